/** Sends a signal to a job whose function waits for it. */

import { useState } from "react";
import { api } from "../data/client";
import { useAct, useMay } from "../data/queries";
import { t } from "../language";
import { Button } from "./basics";
import { Ask, Labelled } from "./dialog";

export function SendButton({ id, name }: { id: string; name: string }) {
  const may = useMay();
  const [open, setOpen] = useState(false);
  const [text, setText] = useState("true");
  const act = useAct(t("Sent: {name}", { name }));
  const value = parsed(text);
  const close = () => setOpen(false);
  return (
    <>
      <Button kind="primary" disabled={!may} onClick={() => setOpen(true)}>
        {t("Send {name}", { name })}
      </Button>
      {open && (
        <Ask
          title={t("Send the signal {name}", { name })}
          verb={t("Send")}
          busy={act.isPending}
          disabled={value === undefined}
          close={close}
          submit={() => act.mutate(() => api.sendSignal(id, { name, value: value?.value }), { onSuccess: close })}
        >
          <p>{t("The function of this job waits for it, and continues with this value.")}</p>
          <Labelled label={t("Value, in JSON")}>
            <textarea
              name="value"
              rows={4}
              className="field font-mono text-xs"
              value={text}
              aria-invalid={value === undefined}
              onChange={(event) => setText(event.target.value)}
            />
          </Labelled>
        </Ask>
      )}
    </>
  );
}

function parsed(text: string): { value: unknown } | undefined {
  try {
    return { value: text.trim() ? JSON.parse(text) : null };
  } catch {
    return undefined;
  }
}
