/**
 * Translates the server's sentences. The server writes English: it does not know who reads, and logs, events and other
 * clients have the same text. Its sentences are recognised by templates, a catalogue of which is loaded with a
 * language; what is not recognised stays English.
 *
 * The name of a hole says what it takes: a number (n, n2), a clock time (clock), a list of these (clocks), a time
 * zone (zone), a name without spaces or in quotes (NAMES), other text of users that is never translated (KEPT), a phrase
 * or a single word that must be recognised too (PHRASES, WORDS), a word that may be (SPOKEN), or anything else, such as a
 * reason, which is translated if it is a sentence of ours. A single word in a reason is the user's.
 */

export type Sentences = Record<string, string>;

const HOLE = /\{(\w+)\}/;
const NAMES = [...["breaker", "host", "id", "instance", "name", "needed", "node", "option", "pool", "store", "worker"]];
const KEPT = [
  ...["alias", "error", "field", "flow", "gone", "key", "labels", "mask", "names", "nodes", "options", "path"],
  ...["pattern", "signal", "type", "type2"],
];
/** A number of things: "3 jobs", "about 1,200 jobs", "10 or more jobs". */
const COUNTED = ["attempts", "crashes", "failures", "jobs", "pools", "slots", "threads", "workers"];
/** Parts of a schedule. None has a semicolon, which joins sentences. */
const TICKING = ["dates", "days", "hours", "minutes", "months", "ticks"];
const SPOKEN = ["action", "mode", "role", "status"];
const PHRASES = [
  ...[
    "attempt",
    "attempts",
    "because",
    "bound",
    "crashes",
    "dates",
    "days",
    "done",
    "failures",
    "fault",
    "hours",
    "how",
  ],
  ...["jobs", "lacking", "latency", "minutes", "months", "never", "next", "pools", "rate", "slots", "state", "subject"],
  ...["threads", "ticks", "time", "times", "words", "workers"],
];
const WORDS = ["day", "day2", "month", "month2", "nth", "unit"];
/** How sentences are joined: by what, in the other language by what, and whether each of them must be recognised. */
const JOINTS: [RegExp, string, boolean][] = [
  [/; /, "; ", false],
  [/, /, ", ", true],
  [/, and | and |, /, " and ", true],
];
const BULLET = "\n  - ";
/** Templates around whole sentences. */
const OUTER = /^\{(words|problem)\}/;
const MOMENT = /^[\d:]+$/;

interface Template {
  pattern: RegExp;
  /** The longest text between holes: looking for it first is faster than the pattern. */
  anchor: string;
  holes: string[];
  translation: string;
}

const escaped = (text: string) => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");

function taking(hole: string): string {
  if (/^n\d?$/.test(hole)) return "([\\d.,]+)";
  if (hole === "clocks") return "([\\d:]+(?:(?:, and | and |, )[\\d:]+)*)";
  if (/^clock\d?$/.test(hole)) return "([\\d:.+TZ -]*\\d[\\d:.+TZ -]*)";
  if (hole === "zone") return "([A-Z][\\w+-]*(?:/[\\w+-]+)*)";
  if (WORDS.includes(hole)) return "(\\w+)";
  if (COUNTED.includes(hole)) return "((?:about )?\\d[\\d.,]* [a-z ]+?)";
  if (TICKING.includes(hole)) return "([^;]+?)";
  return NAMES.includes(hole) ? "('[^']*'|\\S+?)" : "(.+?)";
}

function templateOf([sentence, translation]: [string, string]): Template {
  const parts = sentence.split(HOLE);
  const holes = parts.filter((_, place) => place % 2 === 1);
  const texts = parts.filter((_, place) => place % 2 === 0);
  const anchor = texts.reduce((longest, text) => (text.length > longest.length ? text : longest), "");
  const pattern = parts.map((part, place) => (place % 2 ? taking(part) : escaped(part))).join("");
  return { pattern: new RegExp(`^${pattern}$`, "s"), anchor, holes, translation };
}

/** Returns a function that translates a sentence; `words` are translations of single words, and of joints. */
export function interpreter(sentences: Sentences, words: Sentences): (text: string) => string {
  const exactness = (text: string) => (OUTER.test(text) ? 1_000 : text.replace(/\{\w+\}/g, "").length);
  const templates = Object.entries(sentences)
    .filter(([sentence]) => HOLE.test(sentence))
    .sort(([one], [two]) => exactness(two) - exactness(one)) // the outer ones, then the most exact one
    .map(templateOf);

  function read(text: string, free: boolean): string | null {
    return joined(text.split(BULLET), BULLET, false, free) ?? readLine(text, free);
  }

  /** Reads a line; a single word is of ours only where the text is not free. */
  function readLine(text: string, free: boolean): string | null {
    if (free && !text.includes(" ")) return null;
    const whole = sentences[text] ?? (free ? undefined : words[text]);
    if (whole !== undefined) return whole;
    for (const template of templates) {
      const said = filled(template, text);
      if (said !== null) return said;
    }
    for (const [joint, name, all] of JOINTS) {
      const said = joined(text.split(joint), words[name] ?? name, all, free);
      if (said !== null) return said;
    }
    return null;
  }

  function joined(parts: string[], joint: string, all: boolean, free: boolean): string | null {
    if (parts.length === 1) return null;
    const known = parts.map((part) => (MOMENT.test(part) ? part : read(part, free)));
    const enough = all ? known.every((part) => part !== null) : known.some((part) => part !== null);
    return enough ? known.map((part, place) => part ?? parts[place]).join(joint) : null;
  }

  function filled({ pattern, anchor, holes, translation }: Template, text: string): string | null {
    if (!text.includes(anchor)) return null;
    const values = pattern.exec(text)?.slice(1);
    if (!values) return null;
    const said = values.map((value, place) => meaning(holes[place] ?? "", value));
    if (holes.some((hole, place) => [...PHRASES, ...WORDS].includes(hole) && said[place] === null)) return null;
    return holes.reduce(
      (so, hole, place) => so.replace(`{${hole}}`, () => said[place] ?? values[place] ?? ""),
      translation,
    );
  }

  function meaning(hole: string, value: string): string | null {
    if (NAMES.includes(hole) || KEPT.includes(hole)) return null;
    return read(value, ![...PHRASES, ...WORDS, ...SPOKEN].includes(hole));
  }

  return (text) => read(text, false) ?? text;
}
