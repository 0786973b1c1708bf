/** A form made from a payload's JSON Schema; what has no field of its own is typed as JSON. */

import { useState } from "react";
import type { Schema } from "../data/types";
import { Labelled } from "./dialog";

type Values = Record<string, unknown>;

/** Follow references, and look through "this or null". */
function plain(schema: Schema, root: Schema): { schema: Schema; optional: boolean } {
  let here = schema;
  for (let hops = 0; here.$ref && hops < 10; hops++) {
    here = { ...root.$defs?.[here.$ref.replace("#/$defs/", "")], ...omitRef(here) };
  }
  const real = here.anyOf?.filter((one) => one.type !== "null");
  if (here.anyOf && real?.length === 1) {
    const inner = plain(real[0] as Schema, root).schema;
    return { schema: { ...inner, default: here.default }, optional: real.length < here.anyOf.length };
  }
  return { schema: here, optional: false };
}

function omitRef({ $ref: _, ...rest }: Schema): Schema {
  return rest;
}

export function fieldsOf(root: Schema | null): [string, Schema, boolean][] | null {
  if (!root) return null;
  const { schema } = plain(root, root);
  if (schema.type !== "object" || !schema.properties) return schema.type === "object" ? [] : null;
  return Object.entries(schema.properties).map(([name, one]) => {
    const found = plain(one, root);
    return [name, found.schema, Boolean(schema.required?.includes(name)) && !found.optional];
  });
}

export function PayloadForm({
  schema,
  start,
  change,
}: {
  schema: Schema | null;
  start?: unknown;
  /** Called with the payload, or with null and what is wrong. */
  change: (payload: unknown, wrong: string | null) => void;
}) {
  const fields = fieldsOf(schema);
  const [asText, setAsText] = useState(fields === null);
  const [values, setValues] = useState<Values>(() => ({ ...defaults(fields), ...(start as Values | undefined) }));
  const [text, setText] = useState(() => JSON.stringify(values, null, 2));
  const [wrong, setWrong] = useState<Record<string, string>>({});

  const set = (name: string, value: unknown, problem?: string) => {
    const next = { ...values, [name]: value };
    if (value === undefined) delete next[name];
    const { [name]: _, ...others } = wrong;
    const problems = problem ? { ...others, [name]: problem } : others;
    setValues(next);
    setWrong(problems);
    const first = Object.entries(problems)[0];
    change(next, first ? `${first[0]}: ${first[1]}` : null);
  };
  const type = (written: string) => {
    setText(written);
    try {
      const value = JSON.parse(written);
      setValues(value);
      change(value, null);
    } catch (error) {
      change(null, `That is no JSON: ${(error as Error).message}`);
    }
  };
  const swap = () => {
    if (!asText) setText(JSON.stringify(values, null, 2));
    setAsText(!asText);
  };
  return (
    <div className="flex flex-col gap-3">
      {asText ? (
        <Labelled label="Payload, as JSON">
          <textarea
            className="field min-h-40"
            spellCheck={false}
            value={text}
            onChange={(event) => type(event.target.value)}
          />
        </Labelled>
      ) : fields?.length ? (
        fields.map(([name, field, required]) => (
          <Field key={name} name={name} field={field} required={required} value={values[name]} set={set} />
        ))
      ) : (
        <p className="text-muted">It takes no payload.</p>
      )}
      {fields !== null && fields.length > 0 && (
        <button type="button" className="link self-start text-xs" onClick={swap}>
          {asText ? "Edit in fields" : "Edit as JSON"}
        </button>
      )}
    </div>
  );
}

function defaults(fields: [string, Schema, boolean][] | null): Values {
  const known = (fields ?? []).filter(([, field]) => field.default !== undefined && field.default !== null);
  return Object.fromEntries(known.map(([name, field]) => [name, field.default]));
}

function Field({
  name,
  field,
  required,
  value,
  set,
}: {
  name: string;
  field: Schema;
  required: boolean;
  value: unknown;
  set: (name: string, value: unknown, problem?: string) => void;
}) {
  const label = `${name}${required ? "" : " (optional)"}`;
  const hint = field.description;
  if (field.type === "boolean") {
    return (
      <label className="flex items-center gap-2">
        <input type="checkbox" checked={value === true} onChange={(event) => set(name, event.target.checked)} />
        <span>{name}</span>
      </label>
    );
  }
  if (field.enum) {
    return (
      <Labelled label={label} hint={hint}>
        <select
          className="field"
          required={required}
          value={value === undefined ? "" : JSON.stringify(value)}
          onChange={(event) => set(name, event.target.value ? JSON.parse(event.target.value) : undefined)}
        >
          <option value="" />
          {field.enum.map((one) => (
            <option key={JSON.stringify(one)} value={JSON.stringify(one)}>
              {String(one)}
            </option>
          ))}
        </select>
      </Labelled>
    );
  }
  if (field.type === "integer" || field.type === "number") {
    return (
      <Labelled label={label} hint={hint}>
        <input
          type="number"
          className="field"
          required={required}
          step={field.type === "integer" ? 1 : "any"}
          min={field.minimum}
          max={field.maximum}
          value={value === undefined || value === null ? "" : String(value)}
          onChange={(event) => set(name, event.target.value === "" ? undefined : Number(event.target.value))}
        />
      </Labelled>
    );
  }
  if (field.type === "string") {
    return (
      <Labelled label={label} hint={hint}>
        <input
          type={field.writeOnly ? "password" : "text"}
          className="field"
          required={required}
          value={value === undefined || value === null ? "" : String(value)}
          onChange={(event) => set(name, event.target.value === "" && !required ? undefined : event.target.value)}
        />
      </Labelled>
    );
  }
  return <JsonField label={label} hint={hint} name={name} value={value} set={set} />;
}

function JsonField({
  label,
  hint,
  name,
  value,
  set,
}: {
  label: string;
  hint?: string;
  name: string;
  value: unknown;
  set: (name: string, value: unknown, problem?: string) => void;
}) {
  const [text, setText] = useState(value === undefined ? "" : JSON.stringify(value, null, 2));
  const type = (written: string) => {
    setText(written);
    if (written.trim() === "") return set(name, undefined);
    try {
      set(name, JSON.parse(written));
    } catch {
      set(name, value, "that is no JSON");
    }
  };
  return (
    <Labelled label={`${label}, as JSON`} hint={hint}>
      <textarea
        className="field"
        rows={3}
        spellCheck={false}
        value={text}
        onChange={(event) => type(event.target.value)}
      />
    </Labelled>
  );
}
