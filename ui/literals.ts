/** Finds text in the dashboard's source that does not go through `t`, and messages that are not used any longer. */

import { readdirSync, readFileSync } from "node:fs";
import { parseAst } from "vite";

type Tree = { type: string; start: number; end: number; [field: string]: unknown };

const SOURCE = "src";
const CATALOGUES = "languages/";
/** Attributes that people read or hear. */
const READ = ["title", "label", "aria-label", "placeholder", "about", "none", "verb", "hint", "note", "what", "alt"];
/** Names, which are the same in every language. */
const NAMES = ["shiftwork", "scale_up_threshold", "UTC", "English", "Esc", "Enter"];
const LETTERS = /\p{L}{2,}/u;
/** A heading or a sentence, wherever it is; keys and class names begin with a small letter. */
const SENTENCE = /^[‖✓✕▸●■!]? ?[A-Z][a-z]+( |$)/u;
const TRANSLATES = ["t", "rich", "given"];

const isText = (text: unknown, pattern: RegExp): text is string =>
  typeof text === "string" && pattern.test(text) && !NAMES.includes(text.trim());

function textsOf(node: Tree): string[] {
  if (node.type === "Literal") return [node.value as string];
  if (node.type === "TemplateLiteral")
    return (node.quasis as Tree[]).map(({ value }) => (value as { raw: string }).raw);
  return [];
}

/** What an expression can become: both branches of a condition, the right side of `&&`. */
function results(node: Tree): Tree[] {
  if (node.type === "ConditionalExpression")
    return [node.consequent, node.alternate].flatMap((one) => results(one as Tree));
  if (node.type === "LogicalExpression") return results(node.right as Tree);
  return [node];
}

function wrongIn(node: Tree, parent: Tree | null): Tree[] {
  if (node.type === "JSXText") return isText(node.value, LETTERS) ? [node] : [];
  if (node.type === "JSXAttribute" && READ.includes((node.name as { name: string }).name) && node.value) {
    const value = node.value as Tree;
    const said = value.type === "JSXExpressionContainer" ? results(value.expression as Tree) : [value];
    return said.filter((one) => textsOf(one).some((text) => isText(text, LETTERS)));
  }
  if (node.type === "JSXExpressionContainer" && (parent?.type === "JSXElement" || parent?.type === "JSXFragment"))
    return results(node.expression as Tree).filter((one) => textsOf(one).some((text) => isText(text, LETTERS)));
  const compared = parent?.type === "BinaryExpression" || parent?.type === "TSLiteralType";
  return !compared && textsOf(node).some((text) => isText(text, SENTENCE)) ? [node] : [];
}

function walk(node: Tree, parent: Tree | null, seen: (node: Tree, parent: Tree | null) => void) {
  const callee = node.type === "CallExpression" ? (node.callee as { name?: string }).name : undefined;
  seen(node, parent);
  for (const [field, value] of Object.entries(node)) {
    if (field === "arguments" && TRANSLATES.includes(callee ?? "")) continue;
    for (const one of Array.isArray(value) ? value : [value])
      if (one && typeof one === "object" && typeof one.type === "string") walk(one as Tree, node, seen);
  }
}

const files = readdirSync(SOURCE, { recursive: true, encoding: "utf8" }).filter((file) => /\.tsx?$/.test(file));
const sources = files
  .filter((file) => !file.startsWith(CATALOGUES))
  .map((file) => [file, readFileSync(`${SOURCE}/${file}`, "utf8")]);
const problems = new Set<string>();
for (const [file, source] of sources as [string, string][]) {
  walk(parseAst(source, { lang: file.endsWith("x") ? "tsx" : "ts" }) as unknown as Tree, null, (node, parent) => {
    for (const one of wrongIn(node, parent)) {
      const line = source.slice(0, one.start).split("\n").length;
      problems.add(`${SOURCE}/${file}:${line}: not translatable: ${source.slice(one.start, one.end).trim()}`);
    }
  });
}

// Words of the API, such as the states of a node, are in the types of its client.
const all = [...sources.map(([, source]) => source), readFileSync("client/src/api.ts", "utf8")].join("\n");
const { default: catalogue } = await import(`./${SOURCE}/${CATALOGUES}zh-CN.ts`);
for (const message of Object.keys(catalogue)) {
  const written = [JSON.stringify(message), `'${message}'`];
  if (!written.some((one) => all.includes(one))) problems.add(`${CATALOGUES}zh-CN.ts: not used: ${message}`);
}

for (const problem of problems) console.error(problem);
process.exit(problems.size ? 1 : 0);
