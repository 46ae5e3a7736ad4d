import { parseJson } from "../../common/json.ts";
import type { Caller, Reply } from "./calls.ts";
import { LONE_SURROGATE, type TestedValue } from "./values.ts";

/** A place outside of objects that stores or passes on values, unchanged or as JSON without types. */
export interface KeptWay {
  readonly name: string;
  /** Absent: JSON. Otherwise a text alone, JSON as a script writes it, or JSON of the text only. */
  readonly form?: "text" | "script" | "words";
  /** Values that the place changes, by name, each with its mark in the table and the answer. */
  readonly marks?: Readonly<Record<string, readonly [mark: string, answer: unknown]>>;
  readonly write: (caller: Caller, text: string, key: string) => Promise<Reply>;
  /** Returns the value as JSON, as the place answers it. */
  readonly read: (caller: Caller, key: string) => Promise<unknown>;
}

/** The text or JSON passed to a way; `undefined`: the value has no such text. */
export function givenTo(way: KeptWay, value: TestedValue): string | undefined {
  if (way.form === undefined) return value.json;
  if (way.form !== "words") return value[way.form];
  if (value.name === LONE_SURROGATE) return value.json;
  return value.text === undefined ? undefined : JSON.stringify(value.text);
}

/** The expected answer, as JSON, of a way that changes nothing. */
export function keptBy(way: KeptWay, given: string): string {
  return JSON.stringify(way.form === "text" ? given : parseJson(given));
}
