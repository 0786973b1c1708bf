/** How many rows are new above a list that holds still, or have come into it; a click, or the key u, shows them. */

import { t } from "../language";

export function NewAbove({
  n,
  more = false,
  above = true,
  show,
}: {
  n: number;
  more?: boolean;
  /** Whether they are above all others; otherwise rows that left the list have made room for them. */
  above?: boolean;
  show: () => void;
}) {
  return (
    <button
      type="button"
      data-new-rows=""
      className="block w-full border-b border-line bg-accent-soft px-3 py-1.5 text-center text-sm font-medium text-accent hover:underline"
      onClick={show}
    >
      {!above
        ? t("{n} {n:job has|jobs have} moved up into this page", { n })
        : more
          ? t("More than {n} new above", { n })
          : t("{n} new above", { n })}
    </button>
  );
}
