import { parseJson } from "../../common/json.ts";
import type { Caller, Reply } from "./calls.ts";
import { LONE_SURROGATE, type TestedValue } from "./values.ts";

/** A place outside of objects that keeps or hands on values, as they are or as JSON without types. */
export interface KeptWay {
  readonly name: string;
  /** JSON when absent: a text alone, JSON as a script writes it, or JSON of the text alone. */
  readonly form?: "text" | "script" | "words";
  /** What it keeps otherwise, by the name of the value, and what it then answers. */
  readonly marks?: Readonly<Record<string, readonly [mark: string, answer: unknown]>>;
  readonly write: (caller: Caller, text: string, key: string) => Promise<Reply>;
  /** The value as JSON, as the place answers it. */
  readonly read: (caller: Caller, key: string) => Promise<unknown>;
}

/** What a way is given: a text, or JSON; `undefined`: there is no such text. */
export function givenTo(way: KeptWay, value: TestedValue): string | undefined {
  if (way.form === undefined) return value.json;
  if (way.form !== "words") return value[way.form];
  if (value.name === LONE_SURROGATE) return value.json;
  return value.text === undefined ? undefined : JSON.stringify(value.text);
}

/** What it answers, as JSON, when it alters nothing. */
export function keptBy(way: KeptWay, given: string): string {
  return JSON.stringify(way.form === "text" ? given : parseJson(given));
}
