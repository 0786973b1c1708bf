/** Form fields for each kind of value, including objects and lists. */

import { type InputHTMLAttributes, useId, useState } from "react";
import type { Schema } from "../data/types";
import { t } from "../language";
import { Button } from "./basics";
import { Labelled } from "./dialog";
import { choices, fits, initial, isRequired, limits, type Shape, shapeOf } from "./schema";

type Values = Record<string, unknown>;
type Change = (value: unknown) => void;
interface Of {
  name: string;
  shape: Shape;
  root: Schema;
  required: boolean;
  value: unknown;
  change: Change;
}

/** The fields of an object. */
export function Members({ shape, root, value, change }: { shape: Shape; root: Schema; value: Values; change: Change }) {
  return Object.entries(shape.properties ?? {}).map(([name, one]) => {
    const inner = shapeOf(one, root);
    const set = (next: unknown) => {
      const { [name]: _, ...others } = value;
      change(next === undefined ? others : { ...value, [name]: next });
    };
    return (
      <Field
        key={name}
        name={name}
        shape={inner}
        root={root}
        required={isRequired(shape, name) && !inner.nullable}
        value={value[name]}
        change={set}
      />
    );
  });
}

function Field(of: Of) {
  const { name, shape, required, value, change } = of;
  const label = required ? name : t("{name} (optional)", { name });
  const hint = [shape.description, limits(shape)].filter(Boolean).join(t("; "));
  const absent = value === undefined || value === null;
  if (!fits(value, shape) || shape.kind === "json")
    return <JsonText label={label} hint={hint} required={required} value={value} change={change} />;
  switch (shape.kind) {
    case "yes or no":
      return required || shape.default === true || shape.default === false ? (
        <label className="flex items-center gap-2">
          <input type="checkbox" checked={value === true} onChange={(event) => change(event.target.checked)} />
          <span>{name}</span>
          {hint && <span className="text-xs text-muted">{hint}</span>}
        </label>
      ) : (
        <Choice label={label} hint={hint} options={[true, false]} value={value} change={change} />
      );
    case "choice":
      return (
        <Choice label={label} hint={hint} required={required} options={choices(shape)} value={value} change={change} />
      );
    case "number":
      return (
        <Labelled label={label} hint={hint}>
          <input
            type="number"
            className="field"
            required={required}
            step={shape.multipleOf ?? (shape.type === "integer" ? 1 : "any")}
            min={shape.minimum ?? shape.exclusiveMinimum}
            max={shape.maximum ?? shape.exclusiveMaximum}
            value={absent ? "" : String(value)}
            onChange={(event) => change(event.target.value === "" ? undefined : event.target.valueAsNumber)}
          />
        </Labelled>
      );
    case "text":
      return <Text label={label} hint={hint} of={of} />;
    case "list":
      return <List {...of} label={label} hint={hint} />;
    default:
      return <Inner {...of} label={label} hint={hint} />;
  }
}

/** The server's placeholder for a secret. */
const MASK = "•••";
const TYPES: Record<string, string> = { date: "date", time: "time", email: "email", uri: "url" };
const AS_WRITTEN: Record<string, string> = {
  "date-time": t("such as {example}", { example: "2031-05-17T09:30:00Z" }),
  duration: t("such as {example}", { example: "PT1H30M" }),
  uuid: t("a UUID"),
  byte: t("in base64"),
};

function Text({ label, hint, of: { shape, required, value, change } }: { label: string; hint: string; of: Of }) {
  const secret = shape.writeOnly === true;
  const said = [
    hint,
    secret
      ? value === MASK
        ? t("leave {mask} to keep the value", { mask: MASK })
        : t("hidden")
      : AS_WRITTEN[shape.format ?? ""],
  ];
  const limited: InputHTMLAttributes<HTMLInputElement> = secret
    ? { type: "password", autoComplete: "new-password" }
    : { type: TYPES[shape.format ?? ""] ?? "text", minLength: shape.minLength, maxLength: shape.maxLength };
  return (
    <Labelled label={label} hint={said.filter(Boolean).join(t("; "))}>
      <input
        {...limited}
        className="field"
        required={required}
        value={typeof value === "string" ? value : ""}
        onChange={(event) => change(event.target.value === "" && !required ? undefined : event.target.value)}
      />
    </Labelled>
  );
}

function Choice({
  label,
  hint,
  required = false,
  options,
  value,
  change,
}: {
  label: string;
  hint: string;
  required?: boolean;
  options: unknown[];
  value: unknown;
  change: Change;
}) {
  return (
    <Labelled label={label} hint={hint}>
      <select
        className="field"
        required={required}
        value={value === undefined ? "" : JSON.stringify(value)}
        onChange={(event) => change(event.target.value ? JSON.parse(event.target.value) : undefined)}
      >
        <option value="" />
        {options.map((one) => (
          <option key={JSON.stringify(one)} value={JSON.stringify(one)}>
            {one === true ? t("yes") : one === false ? t("no") : String(one)}
          </option>
        ))}
      </select>
    </Labelled>
  );
}

const BOX = "flex min-w-0 flex-col gap-3 rounded-md border border-line bg-ground p-3";

/** A nested object. An optional one has to be added first. */
function Inner({ name, label, hint, shape, root, required, value, change }: Of & { label: string; hint: string }) {
  const absent = value === undefined || value === null;
  return (
    <fieldset className={BOX}>
      <legend className="px-1 text-xs font-medium text-muted">{label}</legend>
      {hint && <p className="text-xs text-muted">{hint}</p>}
      {absent ? (
        <Button small className="self-start" onClick={() => change(initial({ ...shape, nullable: false }, root, true))}>
          {t("Add {name}", { name })}
        </Button>
      ) : (
        <>
          <Members shape={shape} root={root} value={value as Values} change={change} />
          {!required && (
            <Button small kind="danger" className="self-start" onClick={() => change(undefined)}>
              {t("Remove {name}", { name })}
            </Button>
          )}
        </>
      )}
    </fieldset>
  );
}

function List({ name, label, hint, shape, root, required, value, change }: Of & { label: string; hint: string }) {
  const rows = Array.isArray(value) ? value : [];
  const inner = shapeOf(shape.items as Schema, root);
  const without = (index: number) => {
    const left = rows.filter((_, at) => at !== index);
    change(left.length || required ? left : undefined);
  };
  const empty =
    inner.kind === "text" ? "" : (initial(inner, root, true) ?? (inner.kind === "choice" ? choices(inner)[0] : null));
  return (
    <fieldset className={BOX}>
      <legend className="px-1 text-xs font-medium text-muted">{label}</legend>
      {hint && <p className="text-xs text-muted">{hint}</p>}
      {rows.map((row, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a row has no other identity
        <div key={index} className="flex items-start gap-2">
          <div className="min-w-0 grow">
            <Field
              name={`${name} ${index + 1}`}
              shape={inner}
              root={root}
              required
              value={row ?? undefined}
              change={(next) => change(rows.map((old, at) => (at === index ? (next ?? null) : old)))}
            />
          </div>
          <Button
            small
            kind="danger"
            className="mt-5"
            aria-label={t("Remove {name}", { name: `${name} ${index + 1}` })}
            onClick={() => without(index)}
          >
            {t("Remove")}
          </Button>
        </div>
      ))}
      <Button
        small
        className="self-start"
        disabled={rows.length >= (shape.maxItems ?? Number.POSITIVE_INFINITY)}
        onClick={() => change([...rows, empty])}
      >
        {t("Add to {name}", { name })}
      </Button>
    </fieldset>
  );
}

/** Any value, as JSON. Invalid JSON is reported at once, and blocks sending the form. */
export function JsonText({
  label,
  hint,
  required,
  value,
  change,
  rows = 3,
}: {
  label: string;
  hint?: string;
  required: boolean;
  value: unknown;
  change: Change;
  rows?: number;
}) {
  const [text, setText] = useState(value === undefined ? "" : JSON.stringify(value, null, 2));
  const [wrong, setWrong] = useState("");
  const said = useId();
  const type = (box: HTMLTextAreaElement) => {
    setText(box.value);
    const problem = problemOf(box.value, required);
    box.setCustomValidity(problem);
    setWrong(problem);
    if (!problem) change(box.value.trim() ? JSON.parse(box.value) : undefined);
  };
  return (
    <Labelled label={t("{name}, as JSON", { name: label })} hint={hint}>
      <textarea
        className="field"
        rows={rows}
        spellCheck={false}
        required={required}
        aria-describedby={said}
        value={text}
        onChange={(event) => type(event.target)}
      />
      <span id={said} className="text-xs break-words text-bad">
        {wrong}
      </span>
    </Labelled>
  );
}

function problemOf(text: string, required: boolean): string {
  if (!text.trim()) return required ? t("Enter JSON") : "";
  try {
    JSON.parse(text);
    return "";
  } catch (error) {
    return t("Invalid JSON: {error}", { error: (error as Error).message });
  }
}
