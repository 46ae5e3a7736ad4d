import type { TimeWriting, TimeZone } from "../../../common/times/index.ts";
import type { Row, Value } from "../../../common/value.ts";
import type { Principal } from "../permissions/index.ts";
import type { CsvRows } from "./parsing/csv.ts";
import type { RuleBody } from "./definitions/options.ts";
import type { Supplements } from "./definitions/supplements.ts";

/** Options of a rule that concern times. */
export interface RuleTimes extends TimeWriting {
  /** Zone of times that name none; absent: that of the record, which its policy or host has, or else UTC. */
  readonly zone: TimeZone | undefined;
  /** The field that says when a record was; absent: it was when it was read. */
  readonly field: string | undefined;
}

/** A raw record with where it comes from. */
export interface RawRecord {
  readonly text: string;
  readonly timeMs: number;
  readonly host: string;
  readonly source: string;
  /** Named groups of the log policy's file match. */
  readonly groups: Readonly<Record<string, string>>;
  /** The line that names the columns of its file or call; absent where none is known. */
  readonly heading?: string | undefined;
  /** Zone of its policy or host, for times that name none, where the rule has none; absent: UTC. */
  readonly zone?: string | undefined;
}

/**
 * A record as a row of the rule's class, or why it is none. A record the rule leaves out (`--ignore`, blank line) is
 * absent.
 */
export type ParsedRecord = ParsedRow | ParseFault;

export interface ParsedRow {
  readonly ok: true;
  readonly ordinal: number;
  readonly values: Row;
  /** All that the parser found, for the body of a rule; absent where it has none. */
  readonly fields?: Readonly<Record<string, Value>>;
  /** Absent: the class of the rule. */
  readonly class?: string;
  /** By `--time`; absent: that of the raw record. */
  readonly timeMs?: number;
  /** The reason why the record has the time of its reading and not its own. */
  readonly timeFault?: string;
  /** Tells the rows of one record from each other; absent for the first. */
  readonly part?: string;
  /** A rule that the record was passed on to stores no raw bytes. */
  readonly withoutRawBytes?: true;
  /** With whose rights it is written, too: those of the author of the rule. */
  readonly by?: Principal;
}

export interface ParseFault {
  readonly ok: false;
  readonly ordinal: number;
  readonly error: string;
  readonly part?: string;
  /** The record is to be tried again, as a whole: so often, after so long each time. */
  readonly again?: { readonly total: number; readonly intervalMs: number };
  /** In the text of the rule, where its body went wrong. */
  readonly at?: { readonly line: number; readonly column: number };
}

export type OnUnused = (field: string) => void;

/** Class of a rule, as far as the rule needs it. */
export interface RuleTarget {
  readonly path: string;
  readonly columns: readonly { readonly name: string; readonly type?: string | undefined }[];
  /** Absent: it is not known. */
  readonly kind?: "entity" | "record" | undefined;
}

/** A column that gets its value from a member of a member. */
export interface NestedPath {
  readonly column: string;
  readonly path: string;
}

export interface Rule {
  /** Its configuration key, such as `/matrix/rules/access`. */
  readonly key: string;
  /** SHA-256 of its text and of what it uses besides: the same digest parses the same way. */
  readonly digest: string;
  readonly text: string;
  readonly supplements: Supplements;
  /** Class path the records go to; empty where only the body names classes. */
  readonly class: string;
  /** Names of the columns of the class that the rule was compiled for. */
  readonly columns: readonly string[];
  /** Names of the columns that hold times. */
  readonly timeColumns: readonly string[];
  /** How times are written. */
  readonly times: RuleTimes;
  /** Script that runs for each record when it is parsed; absent: the options alone make the rows. */
  readonly body: RuleBody | undefined;
  /** Rules that get each raw record, too. */
  readonly forwardTo: readonly string[];
  /** How a csv rule reads lines; absent for the other parsers. */
  readonly csv?: CsvRows | undefined;
  /** `--raw_bytes=false`: marked records have no raw bytes. */
  readonly withoutRawBytes?: boolean;
  /** Columns that get their values from nested members. */
  readonly paths?: readonly NestedPath[];
  /** True if `parse` may hold the thread for milliseconds, so that a copy to another thread and back costs less. */
  isCostly(records: readonly RawRecord[]): boolean;
  /**
   * In the order given; `ordinal` is the index of the raw record. Never throws for the content of a record. `onUnused`
   * gets the name of each field of a record that no column takes.
   */
  parse(records: readonly RawRecord[], onUnused?: OnUnused): readonly ParsedRecord[];
}

export interface Rules {
  /** A rule that another one passes records on to, as it was pinned with that one. */
  forwarded(principal: Principal, rule: Rule, key: string): Promise<Rule>;
  /**
   * The rule as it is now, to parse by it or to name it in a policy. `AppError("not_found")` without one, with the reason
   * `no_rule`, or without its class; `syntax` or `invalid` when it cannot be used.
   */
  load(principal: Principal, key: string): Promise<Rule>;
  /**
   * A rule as it was when `load` answered this digest, however often it was edited since. `AppError("not_found")` with
   * the reason `text_gone` when its text is not kept any more.
   */
  pinned(principal: Principal, key: string, digest: string): Promise<Rule>;
  /** Keeps the text of a loaded rule, and what it uses besides, for `pinned`, until about then at least. Idempotent. */
  pin(principal: Principal, rule: Rule, untilMs: number): Promise<void>;
}
