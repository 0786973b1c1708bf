/** Copies a text to the clipboard. */

import { t } from "../language";
import { Button } from "./basics";
import { useToast } from "./toast";

export function Copy({ text, what }: { text: string; what: string }) {
  const toast = useToast();
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      toast("ok", t("Copied"));
    } catch {
      toast("bad", t("The browser does not allow copying"));
    }
  };
  return (
    <Button small onClick={copy} aria-label={t("Copy {what}", { what })}>
      {t("Copy")}
    </Button>
  );
}

/** Preformatted text in a scrolling box, with a button to copy it. */
export function Verbatim({ text, what, tall = false }: { text: string; what: string; tall?: boolean }) {
  return (
    <div className="relative">
      <pre
        role="region"
        tabIndex={0}
        aria-label={what}
        className={`overflow-auto rounded-md bg-sunken p-3 pr-16 font-mono text-xs leading-5 ${tall ? "max-h-[60dvh]" : "max-h-96"}`}
      >
        {text}
      </pre>
      <div className="absolute top-2 right-2">
        <Copy text={text} what={what} />
      </div>
    </div>
  );
}
