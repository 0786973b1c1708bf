/** A modal dialog. It uses the browser's own, which keeps the focus inside and closes on Escape. */

import { type FormEvent, type ReactNode, useEffect, useId, useRef } from "react";
import { t } from "../language";
import { Button } from "./basics";

export function Dialog({
  title,
  close,
  children,
  wide = false,
  widest = false,
}: {
  title: string;
  close: () => void;
  children: ReactNode;
  wide?: boolean;
  widest?: boolean;
}) {
  const box = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const shown = box.current;
    if (shown && !shown.open) shown.showModal();
    // Otherwise the browser focuses the close button first.
    shown?.querySelector<HTMLElement>("input, select, textarea")?.focus();
    return () => shown?.close();
  }, []);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Escape closes it; the click is on the backdrop
    <dialog
      ref={box}
      aria-labelledby={id}
      onCancel={close}
      onClick={(event) => event.target === box.current && close()}
      className={`m-auto max-h-[90dvh] w-[calc(100vw-1.5rem)] rounded-lg border border-line bg-surface p-0 text-ink shadow-2xl ${widest ? "max-w-5xl" : wide ? "max-w-2xl" : "max-w-md"}`}
    >
      <div className="flex items-center border-b border-line px-4 py-2.5">
        <h2 id={id} className="text-sm font-semibold">
          {title}
        </h2>
        <Button kind="quiet" small className="ml-auto" aria-label={t("Close")} onClick={close}>
          ×
        </Button>
      </div>
      <div className="p-4">{children}</div>
    </dialog>
  );
}

/** A form in a dialog, with its two buttons. */
export function Ask({
  title,
  verb,
  danger = false,
  wide = false,
  busy = false,
  disabled = false,
  close,
  submit,
  children,
}: {
  title: string;
  verb: string;
  danger?: boolean;
  wide?: boolean;
  busy?: boolean;
  disabled?: boolean;
  close: () => void;
  submit: (data: FormData) => void;
  children: ReactNode;
}) {
  const send = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    submit(new FormData(event.currentTarget));
  };
  return (
    <Dialog title={title} close={close} wide={wide}>
      <form onSubmit={send} className="flex flex-col gap-3 text-sm">
        {children}
        <div className="sticky bottom-0 -mx-4 mt-1 -mb-4 flex justify-end gap-2 border-t border-line bg-surface px-4 py-3">
          <Button onClick={close}>{t("Back")}</Button>
          <Button type="submit" kind={danger ? "danger" : "primary"} disabled={busy || disabled}>
            {busy ? "…" : verb}
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

export function Labelled({ label, hint, children }: { label: ReactNode; hint?: ReactNode; children: ReactNode }) {
  return (
    // biome-ignore lint/a11y/noLabelWithoutControl: the control is the child
    <label className="flex min-w-0 flex-col gap-1">
      <span className="text-xs font-medium text-muted">{label}</span>
      {children}
      {hint && <span className="text-xs text-muted">{hint}</span>}
    </label>
  );
}
