/**
 * Translates the server's sentences. The server writes English: it does not know who reads, and logs, events and other
 * clients have the same text. Its sentences are recognised by templates, a catalogue of which is loaded with a
 * language; what is not recognised stays English.
 *
 * The name of a hole says what it takes: a number (n, n2), a clock time (clock), a name without spaces (NAMES), a phrase
 * that must be recognised too (PHRASES), or anything else, such as an error.
 */

export type Sentences = Record<string, string>;

const HOLE = /\{(\w+)\}/;
const NAMES = ["breaker", "host", "id", "instance", "name", "needed", "node", "pool", "store", "worker", "zone"];
const PHRASES = [
  ...["attempt", "because", "done", "failures", "how", "jobs", "latency", "never", "next", "pools", "slots", "state"],
  ...["threads", "time", "times", "words", "workers"],
];
const JOINT = "; ";

interface Template {
  pattern: RegExp;
  holes: string[];
  translation: string;
}

const escaped = (text: string) => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");

function taking(hole: string): string {
  if (/^n\d?$/.test(hole)) return "([\\d.,]+)";
  if (/^clock\d?$/.test(hole)) return "([\\d:.+TZ -]*\\d[\\d:.+TZ -]*)";
  return NAMES.includes(hole) ? "(\\S+?)" : "(.+?)";
}

function templateOf([sentence, translation]: [string, string]): Template {
  const parts = sentence.split(HOLE);
  const holes = parts.filter((_, place) => place % 2 === 1);
  const pattern = parts.map((part, place) => (place % 2 ? taking(part) : escaped(part))).join("");
  return { pattern: new RegExp(`^${pattern}$`, "s"), holes, translation };
}

/** Returns a function that translates a sentence; `words` are translations of single words. */
export function interpreter(sentences: Sentences, words: Sentences, joint: string): (text: string) => string {
  const fixed = (text: string) => text.replace(/\{\w+\}/g, "").length;
  const templates = Object.entries(sentences)
    .filter(([sentence]) => HOLE.test(sentence))
    .sort(([one], [two]) => fixed(two) - fixed(one)) // the most exact one first
    .map(templateOf);

  function read(text: string): string | null {
    const whole = sentences[text] ?? words[text];
    if (whole !== undefined) return whole;
    for (const template of templates) {
      const said = filled(template, text);
      if (said !== null) return said;
    }
    const parts = text.split(JOINT);
    const known = parts.length > 1 ? parts.map(read) : [];
    return known.some((part) => part !== null) ? known.map((part, place) => part ?? parts[place]).join(joint) : null;
  }

  function filled({ pattern, holes, translation }: Template, text: string): string | null {
    const values = pattern.exec(text)?.slice(1);
    if (!values) return null;
    const said = values.map(read);
    if (holes.some((hole, place) => PHRASES.includes(hole) && said[place] === null)) return null;
    return holes.reduce(
      (so, hole, place) => so.replace(`{${hole}}`, () => said[place] ?? values[place] ?? ""),
      translation,
    );
  }

  return (text) => read(text) ?? text;
}
