/** Reads from a JSON Schema what a form needs to know. */

import type { Schema } from "../data/types";
import { t } from "../language";

export type Kind = "text" | "number" | "yes or no" | "choice" | "object" | "list" | "json";

export interface Shape extends Schema {
  kind: Kind;
  /** Whether null is a valid value. */
  nullable: boolean;
}

const HOPS = 20;

/** Resolves references and unions with null. */
export function shapeOf(schema: Schema, root: Schema): Shape {
  let here = schema;
  for (let hops = 0; here.$ref && hops < HOPS; hops++) {
    const { $ref, ...own } = here;
    here = { ...root.$defs?.[$ref.replace("#/$defs/", "")], ...own };
  }
  const real = here.anyOf?.filter((one) => one.type !== "null");
  if (here.anyOf && real?.length === 1) {
    const { anyOf, ...own } = here;
    return { ...shapeOf(real[0] as Schema, root), ...own, nullable: real.length < anyOf.length };
  }
  return { ...here, kind: kindOf(here), nullable: false };
}

function kindOf(schema: Schema): Kind {
  if (schema.enum || schema.const !== undefined) return "choice";
  if (schema.type === "boolean") return "yes or no";
  if (schema.type === "integer" || schema.type === "number") return "number";
  if (schema.type === "string") return "text";
  if (schema.type === "object" && schema.properties) return "object";
  if (schema.type === "array" && schema.items && !schema.prefixItems) return "list";
  return "json";
}

export const choices = (shape: Shape): unknown[] => shape.enum ?? [shape.const];

/** The initial value of a form: defaults and required containers, nothing else. */
export function initial(shape: Shape, root: Schema, required: boolean): unknown {
  if (shape.default !== undefined && shape.default !== null) return shape.default;
  if (!required || shape.nullable) return undefined;
  if (shape.kind === "object") {
    const parts = Object.entries(shape.properties ?? {}).map(([name, one]) => [
      name,
      initial(shapeOf(one, root), root, isRequired(shape, name)),
    ]);
    return Object.fromEntries(parts.filter(([, value]) => value !== undefined));
  }
  if (shape.kind === "list") return [];
  if (shape.kind === "yes or no") return false;
  if (shape.const !== undefined) return shape.const;
  return undefined;
}

export const isRequired = (shape: Schema, name: string) => Boolean(shape.required?.includes(name));

/** Whether a field of this kind can show the value; an old payload may not match today's types. */
export function fits(value: unknown, shape: Shape): boolean {
  if (value === undefined || (value === null && shape.nullable)) return true;
  if (shape.kind === "object") return typeof value === "object" && value !== null && !Array.isArray(value);
  if (shape.kind === "list") return Array.isArray(value);
  if (shape.kind === "number") return typeof value === "number";
  if (shape.kind === "text") return typeof value === "string";
  if (shape.kind === "yes or no") return typeof value === "boolean";
  return true;
}

/** The limits of a field, in words. */
export function limits(shape: Shape): string {
  const said: string[] = [];
  if (shape.minimum !== undefined) said.push(t("at least {n}", { n: shape.minimum }));
  if (shape.exclusiveMinimum !== undefined) said.push(t("more than {n}", { n: shape.exclusiveMinimum }));
  if (shape.maximum !== undefined) said.push(t("at most {n}", { n: shape.maximum }));
  if (shape.exclusiveMaximum !== undefined) said.push(t("less than {n}", { n: shape.exclusiveMaximum }));
  if (shape.minLength) said.push(t("at least {n} characters", { n: shape.minLength }));
  if (shape.maxLength !== undefined) said.push(t("at most {n} characters", { n: shape.maxLength }));
  return said.join(t(", "));
}
