/**
 * The language of the page: the reader's choice, or the first of the browser's languages that we have.
 *
 * English is in the code, and is the key of every message. Other languages are catalogues, loaded only for their
 * readers. A hole `{name}` takes a value; `{n:job|jobs}` takes the form for the number n, with the forms in the order
 * of CATEGORIES, as many as the language has.
 */

import { createElement, Fragment, type ReactNode } from "react";
import type { Catalogue, Message } from "./languages/zh-CN";

/** The templates of the server, with their translations. */
type Sentences = Record<string, string>;

export type { Message };
export type Tag = "en" | "zh-CN";

interface Language {
  /** The language's name in itself. */
  name: string;
  load: () => Promise<Loaded>;
}

/** The dashboard's own messages, and the server's sentences. */
interface Loaded {
  messages: Partial<Catalogue>;
  sentences: Sentences;
}

const ENGLISH: Loaded = { messages: {}, sentences: {} };
export const LANGUAGES: Record<Tag, Language> = {
  en: { name: "English", load: async () => ENGLISH },
  "zh-CN": {
    name: "简体中文",
    load: async () => {
      const [{ default: messages }, { default: sentences }] = await Promise.all([
        import("./languages/zh-CN"),
        import("./languages/zh-CN.sentences.json"),
      ]);
      return { messages: sound(messages), sentences };
    },
  },
};
/** Accepts a catalogue whose translations have no hole that their message does not have. */
function sound<C extends Catalogue>(catalogue: C & Sound<C>): C {
  return catalogue;
}
const TAGS = Object.keys(LANGUAGES) as Tag[];
const KEY = "shiftwork.language";
const CATEGORIES = ["zero", "one", "two", "few", "many", "other"];
const HOLE = /\{(\w+)(?::([^}]*))?\}/;

/** A language and its script: zh-TW is not written as zh-CN is. */
function script(tag: string): string {
  const whole = new Intl.Locale(tag).maximize();
  return `${whole.language}-${whole.script}`;
}

function chosen(): Tag {
  let stored: string | null = null;
  try {
    stored = localStorage.getItem(KEY);
  } catch {
    // storage may be blocked
  }
  if (TAGS.includes(stored as Tag)) return stored as Tag;
  const spoken = navigator.languages.map((one) => TAGS.find((tag) => script(tag) === script(one)));
  return spoken.find((tag) => tag !== undefined) ?? "en";
}

async function loaded(tag: Tag): Promise<[Tag, Loaded]> {
  try {
    return [tag, await LANGUAGES[tag].load()];
  } catch {
    return ["en", ENGLISH]; // a server of another version serves another catalogue
  }
}

// Every module waits for this one, so that messages can be constants.
const [tag, { messages: catalogue, sentences }] = await loaded(chosen());
document.documentElement.lang = tag;

export const language: Tag = tag;
const whole = new Intl.NumberFormat(tag);
const plural = new Intl.PluralRules(tag);
const forms = CATEGORIES.filter((one) => (plural.resolvedOptions().pluralCategories as string[]).includes(one));

/** Keeps the choice and loads the page in that language. Its place and filters are in the address. */
export function setLanguage(next: Tag) {
  try {
    localStorage.setItem(KEY, next);
  } catch {
    return; // storage is blocked, and the choice would be lost with the page
  }
  window.location.reload();
}

// ── messages ────────────────────────────────────────────────────────────────────────────────────────────────────────

type Holes<M extends string> = M extends `${string}{${infer Hole}}${infer Rest}` ? Hole | Holes<Rest> : never;
type NameOf<Hole extends string> = Hole extends `${infer Name}:${string}` ? Name : Hole;
type Counted<Hole extends string> = Hole extends `${infer Name}:${string}` ? Name : never;
export type Values<M extends string, V> = {
  [Name in NameOf<Holes<M>>]: Name extends Counted<Holes<M>> ? number : V;
};
type Sound<C> = {
  [M in keyof C]: C[M] extends string
    ? [Exclude<NameOf<Holes<C[M]>>, NameOf<Holes<M & string>>>] extends [never]
      ? C[M]
      : never
    : never;
};
type Given<M extends string, V> = [Holes<M>] extends [never] ? [] : [values: Values<M, V>];

/** A message in the page's language, as text. Numbers are written as the language writes them. */
export function t<M extends Message>(message: M, ...[values]: Given<M, string | number>): string {
  return pieces(message, (values ?? {}) as Record<string, ReactNode>).join("");
}

/** A message with elements in its holes. */
export function rich<M extends Message>(message: M, values: Values<M, ReactNode>): ReactNode {
  return createElement(Fragment, null, ...pieces(message, values as Record<string, ReactNode>));
}

/** A word of the API, such as a status or a priority, or a template of the server. What is not known stays English. */
export const wordOf = (code: string): string => sentences[code] ?? (catalogue as Sentences)[code] ?? code;

function pieces(message: Message, values: Record<string, ReactNode>): ReactNode[] {
  const parts = (catalogue[message] ?? message).split(HOLE);
  const texts = parts.filter((_, place) => place % 3 === 0);
  return texts.flatMap((text, place) => {
    const name = parts[3 * place + 1];
    if (name === undefined) return [text];
    const value = values[name];
    return [text, typeof value === "number" ? numbered(value, parts[3 * place + 2]) : value];
  });
}

function numbered(n: number, choice: string | undefined): string {
  if (choice === undefined) return whole.format(n);
  return choice.split("|")[forms.indexOf(plural.select(n))] ?? choice;
}
