/** A form made from a payload's JSON Schema; what has no field of its own is typed as JSON. */

import { useEffect, useState } from "react";
import type { Schema } from "../data/types";
import { JsonText, Members } from "./fields";
import { initial, shapeOf } from "./schema";

type Values = Record<string, unknown>;

/**
 * Tells the payload at first and at every change. What is wrong with it, the fields say themselves: the browser does
 * not send the form before it is mended.
 */
export function PayloadForm({
  schema,
  start,
  change,
}: {
  schema: Schema | null;
  start?: unknown;
  change: (payload: unknown) => void;
}) {
  const root = schema ?? {};
  const shape = shapeOf(root, root);
  const names = Object.keys(shape.properties ?? {});
  const fields = schema !== null && shape.type === "object";
  const [asText, setAsText] = useState(!fields);
  const [payload, setPayload] = useState<unknown>(() => ({
    ...(fields ? (initial({ ...shape, kind: "object" }, root, true) as Values) : {}),
    ...(start as Values | undefined),
  }));
  // biome-ignore lint/correctness/useExhaustiveDependencies: what it begins with is told once
  useEffect(() => change(payload), []);
  const take = (next: unknown) => {
    setPayload(next);
    change(next);
  };
  return (
    <div className="flex flex-col gap-3">
      {asText ? (
        <JsonText label="Payload" required value={payload} change={take} rows={9} />
      ) : names.length ? (
        <Members shape={shape} root={root} value={payload as Values} change={take} />
      ) : (
        <p className="text-muted">It takes no payload.</p>
      )}
      {fields && names.length > 0 && (
        <button type="button" className="link self-start text-xs" onClick={() => setAsText(!asText)}>
          {asText ? "Edit in fields" : "Edit as JSON"}
        </button>
      )}
    </div>
  );
}
