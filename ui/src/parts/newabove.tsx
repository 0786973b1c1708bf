/** How many rows are new above a list that holds still; a click, or the key u, shows them. */

import { t } from "../language";

export function NewAbove({ n, more = false, show }: { n: number; more?: boolean; show: () => void }) {
  return (
    <button
      type="button"
      data-new-rows=""
      className="block w-full border-b border-line bg-accent-soft px-3 py-1.5 text-center text-sm font-medium text-accent hover:underline"
      onClick={show}
    >
      {more ? t("More than {n} new above", { n }) : t("{n} new above", { n })}
    </button>
  );
}
