import { ApiError } from "../data/client";
import { useBreakers } from "../data/queries";
import { t } from "../language";
import { Answer, Empty, Heading, Panel } from "../parts/basics";
import { BreakerActions, BreakerFacts, BreakerState, isTripped } from "../parts/breakers";
import { Link, to, useParams } from "../router";
import { ROW } from "../shortcuts";

const NOT_FOUND = 404;

export function BreakersPage() {
  const breakers = useBreakers();
  const [params] = useParams();
  const wanted = params.get("breaker");
  const missing = breakers.error instanceof ApiError && breakers.error.status === NOT_FOUND;
  return (
    <>
      <Heading
        title={t("Breakers")}
        about={t("An open breaker holds back the jobs of its workers, because what it guards is broken")}
      />
      <Panel flush>
        {missing ? (
          <Empty title={t("This server does not list breakers")}>{t("Update it to see them here.")}</Empty>
        ) : (
          <Answer of={breakers}>
            {({ breakers: all }) =>
              all.length ? (
                <ul className="divide-y divide-line">
                  {[...all]
                    .sort((a, b) => Number(isTripped(b)) - Number(isTripped(a)) || a.name.localeCompare(b.name))
                    .map((breaker) => (
                      <li
                        key={breaker.name}
                        {...ROW}
                        className={`flex flex-wrap items-center gap-x-3 gap-y-1.5 px-3 py-2 text-sm ${breaker.name === wanted ? "bg-accent-soft" : ""}`}
                      >
                        <span className="font-medium">{breaker.name}</span>
                        <BreakerState breaker={breaker} />
                        <BreakerFacts breaker={breaker} />
                        <span className="flex flex-wrap gap-x-2 text-xs">
                          {breaker.workers.map((name) => (
                            <Link key={name} href={to(["workers", name])}>
                              {name}
                            </Link>
                          ))}
                        </span>
                        <span className="ml-auto flex gap-1.5">
                          <BreakerActions breaker={breaker} />
                        </span>
                      </li>
                    ))}
                </ul>
              ) : (
                <Empty title={t("No breakers")}>{t("Workers that are registered with a breaker have one.")}</Empty>
              )
            }
          </Answer>
        )}
      </Panel>
    </>
  );
}
