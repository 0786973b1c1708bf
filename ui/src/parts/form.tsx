/** A form generated from a payload's JSON Schema; values without a field of their own are typed as JSON. */

import { useEffect, useState } from "react";
import type { Schema } from "../data/types";
import { t } from "../language";
import { JsonText, Members } from "./fields";
import { initial, shapeOf } from "./schema";

type Values = Record<string, unknown>;

/**
 * Reports the payload initially and at every change. The fields report their own errors, and the browser does not
 * send the form until they are fixed.
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
  // biome-ignore lint/correctness/useExhaustiveDependencies: the initial payload is reported once
  useEffect(() => change(payload), []);
  const take = (next: unknown) => {
    setPayload(next);
    change(next);
  };
  return (
    <div className="flex flex-col gap-3">
      {asText ? (
        <JsonText label={t("Payload")} required value={payload} change={take} rows={9} />
      ) : names.length ? (
        <Members shape={shape} root={root} value={payload as Values} change={take} />
      ) : (
        <p className="text-muted">{t("This worker takes no payload.")}</p>
      )}
      {fields && names.length > 0 && (
        <button type="button" className="link self-start text-xs" onClick={() => setAsText(!asText)}>
          {asText ? t("Edit in fields") : t("Edit as JSON")}
        </button>
      )}
    </div>
  );
}
