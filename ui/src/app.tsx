import { useQueryClient } from "@tanstack/react-query";
import { Component, type ReactNode, useEffect } from "react";
import { ApiError } from "./data/client";
import { listen } from "./data/live";
import { useMe } from "./data/queries";
import { t } from "./language";
import { BreakersPage } from "./pages/breakers";
import { DeadPage } from "./pages/dead";
import { EventsPage } from "./pages/events";
import { FlowPage, FlowsPage } from "./pages/flows";
import { JobPage } from "./pages/job";
import { JobsPage } from "./pages/jobs";
import { NodesPage } from "./pages/nodes";
import { OverviewPage } from "./pages/overview";
import { PoolPage, PoolsPage } from "./pages/pools";
import { SchedulePage, SchedulesPage } from "./pages/schedules";
import { SignInPage } from "./pages/signin";
import { WorkerPage, WorkersPage } from "./pages/workers";
import { Empty, Failure, Loading } from "./parts/basics";
import { Link, to, usePlace } from "./router";
import { PAGES, Shell } from "./shell";
import { inZone } from "./zone";

export function App() {
  const me = useMe();
  const client = useQueryClient();
  useEffect(() => {
    if (me.data) listen(client);
  }, [me.data, client]);
  if (me.error instanceof ApiError && me.error.status === 401) return <SignInPage why={inZone(me.error.message)} />;
  if (me.data) {
    return (
      <Shell>
        <Guard>
          <Page />
        </Guard>
      </Shell>
    );
  }
  return (
    <main className="mx-auto max-w-md pt-24">
      <h1 className="sr-only">shiftwork</h1>
      {me.error ? <Failure error={me.error} again={() => me.refetch()} /> : <Loading />}
    </main>
  );
}

/** Shows the error of a page that fails, and keeps the navigation usable. */
class Guard extends Component<{ children: ReactNode }, { error: Error | null }> {
  state: { error: Error | null } = { error: null };
  static getDerivedStateFromError = (error: Error) => ({ error });
  render() {
    const { error } = this.state;
    return error ? <Failure error={error} again={() => this.setState({ error: null })} /> : this.props.children;
  }
}

function Page() {
  const { path } = usePlace();
  const [page = "overview", name] = path;
  const label = PAGES.find(([known]) => known === page)?.[1] ?? t("Not found");
  useEffect(() => {
    document.title = `${name ? `${name} · ` : ""}${label} · shiftwork`;
  }, [name, label]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new page starts at its top
  useEffect(() => {
    window.scrollTo(0, 0);
  }, [page, name]);
  // The key resets the state of a page when it shows another pool, worker or job.
  switch (page) {
    case "overview":
      return <OverviewPage />;
    case "pools":
      return name ? <PoolPage key={name} name={name} /> : <PoolsPage />;
    case "workers":
      return name ? <WorkerPage key={name} name={name} /> : <WorkersPage />;
    case "schedules":
      return name ? <SchedulePage key={name} name={name} /> : <SchedulesPage />;
    case "jobs":
      return name ? <JobPage key={name} id={name} /> : <JobsPage />;
    case "flows":
      return name ? <FlowPage key={name} id={name} /> : <FlowsPage />;
    case "dead":
      return <DeadPage />;
    case "breakers":
      return <BreakersPage />;
    case "nodes":
      return <NodesPage />;
    case "events":
      return <EventsPage />;
    default:
      return (
        <>
          <h1 className="sr-only">{t("Not found")}</h1>
          <Empty title={t("This page does not exist")}>
            <Link href={to(["overview"])}>{t("Go to the overview")}</Link>
          </Empty>
        </>
      );
  }
}
