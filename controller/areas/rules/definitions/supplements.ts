import { createHash } from "node:crypto";
import type { Value } from "../../../../common/value.ts";

/** Data that a rule uses besides its text. It is pinned with the rule, so a repeated batch is parsed the same way. */
export interface Supplements {
  /** Users' grok patterns by name, those that the rule's expressions reach. */
  readonly patterns: Readonly<Record<string, string>>;
  /** The rule's extension table as LTSV text, where the rule looks something up; absent: it looks up nothing. */
  readonly extension?: string;
  /** User who stored the text; the rule runs with his rights. Absent: the platform, and the rule has its rights. */
  readonly author?: string;
  /** Tables that the body looks up, by their names in the body. */
  readonly tables?: Readonly<Record<string, PinnedTable>>;
  /** Rules that records are passed on to, by their keys: all that are reached. */
  readonly forwards?: Readonly<Record<string, ForwardedRule>>;
  /** Zones of times without one; absent where the rule has a zone, or all records are of UTC. */
  readonly zones?: RecordZones;
  /** Definitions that the rows follow from, by the paths of their classes. */
  readonly classes?: Readonly<Record<string, PinnedClass>>;
}

/** Zones of records by where they come from, as their names. */
export interface RecordZones {
  /** Absent: UTC. */
  readonly host?: string | undefined;
  /** Names of zones, by the policies that have one. */
  readonly policies: Readonly<Record<string, string>>;
}

/** A `WriteBasis` of the area objects, which threads that parse must not reach. */
export interface PinnedClass {
  readonly cid: number;
  readonly keys: readonly string[];
  readonly keyMode: "manu" | "uuid" | "md5";
  readonly columns: readonly (readonly [name: string, number: number])[];
  readonly triggers: readonly PinnedTrigger[];
}

interface PinnedTrigger {
  readonly class: string;
  readonly name: string;
  readonly text: string;
  readonly language: "lua" | "javascript";
  readonly before: boolean;
  readonly level: number;
  readonly disabled: boolean;
  readonly author: string;
  readonly modifiedAtMs: number;
}

/** An extension table of a rule as LTSV text, or rows of a table of `/extend`. */
export type PinnedTable = string | readonly Readonly<Record<string, Value>>[];

export interface ForwardedRule {
  readonly text: string;
  readonly supplements: Supplements;
}

export const NO_SUPPLEMENTS: Supplements = { patterns: {} };

export function isSupplemented({ patterns, extension, author, classes, zones }: Supplements): boolean {
  const isUsing = Object.keys(patterns).length > 0 || extension !== undefined || author !== undefined;
  return isUsing || classes !== undefined || zones !== undefined;
}

/** SHA-256 of all that decides what rows a rule makes; of the text alone where it uses nothing else. */
export function digestOf(text: string, supplements: Supplements): string {
  return createHash("sha256")
    .update(isSupplemented(supplements) ? canonical(text, supplements) : text)
    .digest("hex");
}

function canonical(text: string, supplements: Supplements): string {
  const { patterns, extension, author, tables = {}, forwards = {}, classes = {}, zones } = supplements;
  const ofZones = zones === undefined ? [] : [[zones.host ?? "", sorted(zones.policies)]];
  const parts = [text, sorted(patterns), extension ?? null, sorted(classes), ...ofZones];
  if (author === undefined) return JSON.stringify(parts);
  const passed = sorted(forwards).map(([key, rule]) => [key, canonical(rule.text, rule.supplements)]);
  return JSON.stringify([...parts, author, sorted(tables), passed]);
}

function sorted<T>(named: Readonly<Record<string, T>>): readonly (readonly [string, T])[] {
  return Object.entries(named).sort(([one], [other]) => (one < other ? -1 : 1));
}
