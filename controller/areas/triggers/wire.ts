import { AppError } from "../../../common/errors.ts";
import { revisionOf } from "../../../common/revisions.ts";
import { triggerStamp, type TriggerDefinition } from "../objects/index.ts";

/** A trigger as clients send it. All attributes are texts, including numbers and booleans. */
export interface TriggerInput {
  readonly class: string;
  readonly name: string;
  readonly script: string;
  readonly attr?: Readonly<Record<string, unknown>>;
}

/** All triggers of a class, as clients read them. */
export interface TriggerListing {
  readonly class: string;
  /** Time of the latest change in ms; 0 without triggers. */
  readonly vtime: number;
  readonly script: Readonly<Record<string, string>>;
  /** Attributes as JSON, by name of the trigger. */
  readonly attr: Readonly<Record<string, string>>;
  /** Revisions by the name of the trigger. */
  readonly revision: Readonly<Record<string, string>>;
}

const LANGUAGES: Readonly<Record<string, TriggerDefinition["language"]>> = {
  lua: "lua",
  javascript: "javascript",
  js: "javascript",
};
/** Matches a first line such as `--language=javascript` or `// language: lua`. */
const PRAGMA = /^\s*(?:--|\/\/)\s*language\s*[=:]?\s*(\w+)\s*(?:\n|$)/i;
const LEVEL_MAX = 1_000_000;

export function readTrigger(input: TriggerInput): Omit<TriggerDefinition, "author" | "modifiedAtMs"> {
  const { name, script, attr = {} } = input;
  return {
    class: input.class.replace(/\/+$/, ""),
    name,
    text: script,
    language: languageOf(attr["language"], script),
    before: truth("before", attr["before"], true),
    disabled: truth("disable", attr["disable"], false),
    level: levelOf(attr["level"]),
  };
}

export function listing(path: string, triggers: readonly TriggerDefinition[]): TriggerListing {
  const named = [...triggers].sort((one, other) => (one.name < other.name ? -1 : 1));
  return {
    class: path,
    vtime: Math.max(0, ...triggers.map(({ modifiedAtMs }) => modifiedAtMs)),
    script: Object.fromEntries(named.map(({ name, text }) => [name, text])),
    attr: Object.fromEntries(named.map((trigger) => [trigger.name, attributes(trigger)])),
    revision: Object.fromEntries(named.map((trigger) => [trigger.name, revisionOf(triggerStamp(trigger))])),
  };
}

function attributes({ disabled, before, level, language }: TriggerDefinition): string {
  return JSON.stringify({ disable: String(disabled), before: String(before), level: String(level), language });
}

function languageOf(given: unknown, script: string): TriggerDefinition["language"] {
  const name = isMissing(given) ? (PRAGMA.exec(script)?.[1] ?? "lua") : String(given);
  const language = Object.hasOwn(LANGUAGES, name.toLowerCase()) ? LANGUAGES[name.toLowerCase()] : undefined;
  if (language === undefined)
    throw new AppError("invalid", `A trigger is written in lua or javascript, not in ${name}.`);
  return language;
}

function truth(name: string, given: unknown, otherwise: boolean): boolean {
  if (isMissing(given)) return otherwise;
  const text = String(given).toLowerCase();
  if (text !== "true" && text !== "false") throw new AppError("invalid", `The attribute ${name} is true or false.`);
  return text === "true";
}

function levelOf(given: unknown): number {
  if (isMissing(given)) return 0;
  const level = Number(given);
  if (Number.isInteger(level) && Math.abs(level) <= LEVEL_MAX) return level;
  throw new AppError("invalid", `The attribute level is a whole number of at most ${LEVEL_MAX}.`);
}

function isMissing(given: unknown): boolean {
  return given === undefined || given === null || given === "";
}
