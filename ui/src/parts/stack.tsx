/** Shows where a running job is in its code, by asking its process. */

import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { api } from "../data/client";
import { useMay } from "../data/queries";
import { t } from "../language";
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
        title={may ? t("Show where the job is in its code") : t("Your token may only read")}
        aria-label={small ? t("Show the stack of {id}", { id }) : undefined}
        onClick={show}
      >
        {small ? t("Stack") : t("Show stack")}
      </Button>
      {open && (
        <Dialog title={t("Stack")} close={() => setOpen(false)} widest>
          {stack.data ? (
            <div className="flex flex-col gap-3">
              <div className="flex flex-wrap items-center gap-2 text-xs text-muted">
                <span>
                  {t("{instance}, pid {pid}, at {time}; the job's own stack first", {
                    instance: stack.data.instance,
                    pid: String(stack.data.pid),
                    time: clock(Date.parse(stack.data.at)),
                  })}
                </span>
                <Button small className="ml-auto" disabled={stack.isPending} onClick={() => stack.mutate()}>
                  {t("Refresh")}
                </Button>
              </div>
              <Verbatim text={stack.data.stack} what={t("stack")} tall />
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
