/** Shows where a running job is in its code, by asking its process. */

import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../data/client";
import { useMay } from "../data/queries";
import { clock } from "../words";
import { Button, Failure, Loading } from "./basics";
import { Verbatim } from "./copy";
import { Dialog } from "./dialog";

export function StackButton({ id, small }: { id: string; small?: boolean }) {
  const may = useMay();
  const [open, setOpen] = useState(false);
  const stack = useMutation({ mutationFn: () => api.jobStack(id) });
  const show = () => {
    setOpen(true);
    stack.mutate();
  };
  return (
    <>
      <Button
        small={small}
        kind={small ? "quiet" : "plain"}
        disabled={!may}
        title={may ? "Show where the job is in its code" : "Your token may only read"}
        aria-label={small ? `Show the stack of ${id}` : undefined}
        onClick={show}
      >
        {small ? "Stack" : "Show stack"}
      </Button>
      {open && (
        <Dialog title="Stack" close={() => setOpen(false)} widest>
          {stack.data ? (
            <div className="flex flex-col gap-3">
              <div className="flex flex-wrap items-center gap-2 text-xs text-muted">
                <span>
                  {stack.data.instance}, pid {stack.data.pid}, at {clock(Date.parse(stack.data.at))}; the job's own
                  stack first
                </span>
                <Button small className="ml-auto" disabled={stack.isPending} onClick={() => stack.mutate()}>
                  Refresh
                </Button>
              </div>
              <Verbatim text={stack.data.stack} what="stack" tall />
            </div>
          ) : stack.error ? (
            <Failure error={stack.error} again={() => stack.mutate()} />
          ) : (
            <Loading rows={8} />
          )}
        </Dialog>
      )}
    </>
  );
}
