import { createHash } from "node:crypto";
import type { Value } from "../../../../common/value.ts";

/** Data that a rule uses besides its text. It is pinned with the rule, so a repeated batch is parsed the same way. */
export interface Supplements {
  /** Grok patterns of users by name: all that the expressions of the rule use, directly or through others. */
  readonly patterns: Readonly<Record<string, string>>;
  /** The rule's extension table as LTSV text. Absent: the rule looks up nothing. */
  readonly extension?: string;
  /** User who stored the text, and with whose rights the rule runs. Absent: the rule has the rights of the platform. */
  readonly author?: string;
  /** Tables that the body looks up, by their names in the body. */
  readonly tables?: Readonly<Record<string, PinnedTable>>;
  /** All rules that may get records from this one, directly or through others, by key. */
  readonly forwards?: Readonly<Record<string, ForwardedRule>>;
  /** Zones for times without a zone. Absent if the rule has a zone, or if UTC applies to all records. */
  readonly zones?: RecordZones;
  /** Definitions of the classes that rows may be stored in, by path. */
  readonly classes?: Readonly<Record<string, PinnedClass>>;
}

/** Names of the time zones of records, by their origin. */
export interface RecordZones {
  /** Zone of the host. Absent: UTC. */
  readonly host?: string | undefined;
  /** Zone of each policy that has one, by policy name. */
  readonly policies: Readonly<Record<string, string>>;
}

/**
 * The same form as `WriteBasis` of the area objects. It is repeated here, because parsing threads must not import that
 * area.
 */
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

/** The extension table of a rule as LTSV text, or the rows of a table of `/extend`. */
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

/** SHA-256 of everything that determines the rows of a rule. For a rule without supplements, of the text alone. */
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
