/** The pages of a list that the server reads from a place on. The place is in the address, the way back is remembered. */

import { useState } from "react";
import { t } from "../language";
import { useParams } from "../router";
import { Button } from "./basics";

export function usePages() {
  const [params, change] = useParams();
  const after = params.get("after");
  const [before, setBefore] = useState<(string | null)[]>([]);
  return {
    after,
    number: before.length + 1,
    back: () => {
      change({ after: before.at(-1) ?? null });
      setBefore(before.slice(0, -1));
    },
    forth: (next: string | null) => {
      setBefore([...before, after]);
      change({ after: next });
    },
    /** Changes filters: the list begins anew. */
    pick: (changed: Record<string, string | string[] | null>) => {
      setBefore([]);
      change({ after: null, ...changed });
    },
  };
}

type Pages = ReturnType<typeof usePages>;

export function Pager({ pages, next, oldest = false }: { pages: Pages; next: string | null; oldest?: boolean }) {
  const [back, forth] = oldest ? [t("Older"), t("Newer")] : [t("Newer"), t("Older")];
  return (
    <>
      <Button small className="ml-auto" disabled={!pages.after} onClick={pages.back}>
        {back}
      </Button>
      <Button small disabled={!next} onClick={() => pages.forth(next)}>
        {forth}
      </Button>
    </>
  );
}
