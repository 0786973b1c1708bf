/**
 * Puts the server's sentences into words. The server writes each as its parts, if it is asked for them: a template, which
 * is the English sentence with holes, and the values of the holes; or a joint, and what it joins. Values may be sentences
 * themselves. A name, an error or what a person wrote is a plain value, and is never translated.
 */

type Parts = [template: string, values: Record<string, string> | string[]];

const HOLE = /\{(\w+)\}/g;

/** Returns a reviver for `JSON.parse`, which replaces `{key: parts}` by words. `wordOf` translates a template or a joint. */
export function teller(key: string, wordOf: (template: string) => string): (name: string, value: unknown) => unknown {
  return (_, value) => {
    const parts = typeof value === "object" && value !== null ? (value as Record<string, Parts>)[key] : undefined;
    return parts === undefined ? value : words(parts, wordOf);
  };
}

function words([template, values]: Parts, wordOf: (template: string) => string): string {
  if (Array.isArray(values)) return values.join(wordOf(template));
  return wordOf(template).replace(HOLE, (hole, name) => values[name] ?? hole);
}
