import { t } from "../language";
import { GOES } from "../shortcuts";
import { Dialog } from "./dialog";

const KEYS: [string[], string][] = [
  [["j"], t("Next row of the list")],
  [["k"], t("Previous row of the list")],
  [["Enter"], t("Open the row")],
  [["x"], t("Select the row")],
  [["u"], t("Show new rows")],
  [["/"], t("Search")],
  [["."], t("Pause or resume updates")],
  [["?"], t("This help")],
  [["Esc"], t("Close the dialog")],
];

export function Help({ close }: { close: () => void }) {
  const goes = Object.entries(GOES).map(
    ([key, [, label]]) => [["g", key], t("Go to {page}", { page: label })] as [string[], string],
  );
  return (
    <Dialog title={t("Keyboard shortcuts")} close={close} wide>
      <dl className="grid grid-cols-[auto_1fr] gap-x-6 gap-y-2 text-sm sm:grid-cols-[auto_1fr_auto_1fr]">
        {[...goes, ...KEYS].map(([keys, label]) => (
          <div key={label} className="contents">
            <dt className="flex gap-1">
              {keys.map((key) => (
                <kbd
                  key={key}
                  className="min-w-6 rounded border border-edge bg-sunken px-1.5 text-center font-mono text-xs leading-5"
                >
                  {key}
                </kbd>
              ))}
            </dt>
            <dd>{label}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
