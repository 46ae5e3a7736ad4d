import type { Row } from "../../../common/value.ts";
import type { Principal } from "../permissions/index.ts";

/** A raw record with where it comes from. */
export interface RawRecord {
  readonly text: string;
  readonly timeMs: number;
  readonly host: string;
  readonly source: string;
  /** Named groups of the log policy's file match. */
  readonly groups: Readonly<Record<string, string>>;
}

/** A record as a row of the rule's class, or why it is none. A record the rule leaves out (`--ignore`, blank line) is absent. */
export type ParsedRecord =
  | { readonly ok: true; readonly ordinal: number; readonly values: Row }
  | { readonly ok: false; readonly ordinal: number; readonly error: string };

export interface Rule {
  /** Its configuration key, such as `/matrix/rules/access`. */
  readonly key: string;
  /** Of the key-value store: the same revision always parses the same way. */
  readonly revision: number;
  /** Class path the records go to. */
  readonly class: string;
  /** In the order given; `ordinal` is the index of the raw record. Never throws for what a record holds. */
  parse(records: readonly RawRecord[]): readonly ParsedRecord[];
}

export interface Rules {
  /** Compiled and cached by revision. `revision` asks for a pinned one; `AppError("not_found")` when it is no longer kept. */
  load(principal: Principal, key: string, revision?: number): Promise<Rule>;
}
