import type { TimeWriting, TimeZone } from "../../../common/times/index.ts";
import type { Row, Value } from "../../../common/value.ts";
import type { Principal } from "../permissions/index.ts";
import type { CsvRows } from "./parsing/csv.ts";
import type { RuleBody } from "./definitions/options.ts";
import type { Supplements } from "./definitions/supplements.ts";

/** Options of a rule that concern times. */
export interface RuleTimes extends TimeWriting {
  /** Zone for times without a zone. Absent: the zone of the record, which its policy or host has; otherwise UTC. */
  readonly zone: TimeZone | undefined;
  /** The field with the time of a record. Absent: a record has the time at which it was read. */
  readonly field: string | undefined;
}

/** A raw record and its origin. */
export interface RawRecord {
  readonly text: string;
  readonly timeMs: number;
  readonly host: string;
  readonly source: string;
  /** Named groups of the log policy's file match. */
  readonly groups: Readonly<Record<string, string>>;
  /** The line that names the columns in the record's file or call. Absent: none is known. */
  readonly heading?: string | undefined;
  /** Zone of its policy or host for times without a zone. The zone of the rule takes precedence. Absent: UTC. */
  readonly zone?: string | undefined;
}

/**
 * A row of the rule's class, or the reason why the record makes none. A record that the rule leaves out (`--ignore`,
 * blank line) has neither.
 */
export type ParsedRecord = ParsedRow | ParseFault;

export interface ParsedRow {
  readonly ok: true;
  readonly ordinal: number;
  readonly values: Row;
  /** All fields that the parser found, as input of the rule's body. Absent for a rule without a body. */
  readonly fields?: Readonly<Record<string, Value>>;
  /** Absent: the class of the rule. */
  readonly class?: string;
  /** The record's own time, by `--time`. Absent: the time of the raw record. */
  readonly timeMs?: number;
  /** The reason why the record has the time at which it was read instead of its own time. */
  readonly timeFault?: string;
  /** Distinguishes the rows of one record. Absent for the first row. */
  readonly part?: string;
  /** Present if the record was passed on to a rule that stores no raw bytes. */
  readonly withoutRawBytes?: true;
  /** The author of the rule, with whose rights the row is written. Absent: the platform, or the caller alone. */
  readonly by?: Principal | undefined;
}

export interface ParseFault {
  readonly ok: false;
  readonly ordinal: number;
  readonly error: string;
  readonly part?: string;
  /** Present if the whole record must be tried again: at most `total` times, `intervalMs` after each failure. */
  readonly again?: { readonly total: number; readonly intervalMs: number };
  /** Place in the text of the rule at which its body failed. */
  readonly at?: { readonly line: number; readonly column: number };
}

export type OnUnused = (field: string) => void;

/** The part of a class that a rule needs. */
export interface RuleTarget {
  readonly path: string;
  readonly columns: readonly { readonly name: string; readonly type?: string | undefined }[];
  /** Absent: unknown. */
  readonly kind?: "entity" | "record" | undefined;
}

/** A column that gets its value from a nested member. */
export interface NestedPath {
  readonly column: string;
  readonly path: string;
}

export interface Rule {
  /** Its configuration key, such as `/matrix/rules/access`. */
  readonly key: string;
  /** SHA-256 of its text and of everything else that it uses. Rules with the same digest parse the same way. */
  readonly digest: string;
  readonly text: string;
  readonly supplements: Supplements;
  /** Path of the class for the rows; empty if only the body names classes. */
  readonly class: string;
  /** Names of the columns of the class that the rule was compiled for. */
  readonly columns: readonly string[];
  /** Names of the columns that hold times. */
  readonly timeColumns: readonly string[];
  /** Form of times in the records. */
  readonly times: RuleTimes;
  /** Script that runs for each parsed record. Absent: the options alone determine the rows. */
  readonly body: RuleBody | undefined;
  /** Keys of the rules that also get each raw record. */
  readonly forwardTo: readonly string[];
  /** How a csv rule reads lines; absent for the other parsers. */
  readonly csv?: CsvRows | undefined;
  /** `--raw_bytes=false`: marked records have no raw bytes. */
  readonly withoutRawBytes?: boolean;
  /** Columns that get their values from nested members. */
  readonly paths?: readonly NestedPath[];
  /** True if `parse` may block the thread for milliseconds, so that a worker thread is worth the cost of copying. */
  isCostly(records: readonly RawRecord[]): boolean;
  /**
   * Parses the records in the given order; `ordinal` is the index of the raw record. Never throws because of the
   * content of a record. `onUnused` gets the name of each field that no column takes, once for each record with that
   * field.
   */
  parse(records: readonly RawRecord[], onUnused?: OnUnused): readonly ParsedRecord[];
}

export interface Rules {
  /** A rule that gets records from `rule`, in the state in which it was pinned with `rule`. */
  forwarded(principal: Principal, rule: Rule, key: string): Promise<Rule>;
  /**
   * The rule in its current state, for parsing or for a policy. `AppError("not_found")` if it does not exist (reason
   * `no_rule`) or its class does not; `syntax` or `invalid` if it is unusable.
   */
  load(principal: Principal, key: string): Promise<Rule>;
  /**
   * The rule in the state in which `load` returned this digest, even if it was edited since. `AppError("not_found")`
   * with the reason `text_gone` if that state is no longer stored.
   */
  pinned(principal: Principal, key: string, digest: string): Promise<Rule>;
  /**
   * Stores the text of a loaded rule, and everything else that it uses, for `pinned`. They stay until about `untilMs`
   * at least. Idempotent.
   */
  pin(principal: Principal, rule: Rule, untilMs: number): Promise<void>;
}
