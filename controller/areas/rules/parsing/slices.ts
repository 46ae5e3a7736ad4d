import { setImmediate } from "node:timers/promises";
import { isAppError } from "../../../../common/errors.ts";
import { PARSE_PIECE_MAX_CHARACTERS, PARSE_SLICE_MAX_MS, PARSE_THREAD_TIMEOUT_MS } from "../../../../common/limits.ts";
import type { Clock } from "../../../../common/time.ts";
import type { Principal } from "../../permissions/index.ts";
import type { RunOptions, Workers } from "../../../workers/index.ts";
import type { RuleBodies } from "../bodies/bodies.ts";
import type { PlainRule, RuleTasks } from "../tasks.ts";
import type { OnUnused, ParsedRecord, RawRecord, Rule } from "../types.ts";

export interface ParseOptions {
  readonly clock: Clock;
  readonly tenant: string;
  /** Threads for costly parsing. Absent: everything is parsed on this thread. */
  readonly workers?: Workers<RuleTasks> | undefined;
  /**
   * Knows the authors of rules and runs bodies. Absent: records of rules with a body are errors, and other rows have no
   * author.
   */
  readonly bodies?: Pick<RuleBodies, "work"> | undefined;
  readonly signal?: AbortSignal;
}

/**
 * Parses in short slices, so that many long records do not block the thread. Use one instance for all records of a
 * call.
 */
export class ParseSlices {
  readonly #options: ParseOptions;
  /** Authors of rules by user name. Each is looked up once per call. */
  readonly #authors = new Map<string, Principal>();
  #beganMs: number;

  constructor(options: ParseOptions) {
    this.#options = options;
    this.#beganMs = options.clock.monotonicMs();
  }

  /**
   * Returns the same as `rule.parse`, and also runs bodies and forwards records. It parses a few records at a time, and
   * costly ones on a worker thread.
   */
  async parse(rule: Rule, records: readonly RawRecord[], onUnused?: OnUnused): Promise<readonly ParsedRecord[]> {
    return this.#parse(rule, records, { onUnused, chain: [] });
  }

  async #parse(
    rule: Rule,
    records: readonly RawRecord[],
    { onUnused, chain }: { readonly onUnused?: OnUnused | undefined; readonly chain: readonly string[] },
  ): Promise<readonly ParsedRecord[]> {
    const parsed = await this.#parseAll(rule, records, onUnused);
    const { bodies, tenant, signal } = this.#options;
    if (rule.body === undefined && rule.forwardTo.length === 0) {
      // No author is looked up here: a passed-on row gets the author of the rule that passed it on, and a rule without
      // an author needs none.
      const isOfOther = chain.length > 0 || rule.supplements.author === undefined;
      if (isOfOther || bodies === undefined) return parsed;
    }
    if (bodies === undefined) return parsed.map(({ ordinal }) => ({ ok: false, ordinal, error: NO_BODIES }));
    const parse = (target: Rule, passed: readonly RawRecord[]) =>
      this.#parse(target, passed, { chain: [...chain, rule.key] });
    return bodies.work({ rule, records, parsed, tenant, chain, signal, authors: this.#authors, parse });
  }

  async #parseAll(rule: Rule, records: readonly RawRecord[], onUnused?: OnUnused): Promise<readonly ParsedRecord[]> {
    const parsed: ParsedRecord[] = [];
    for (let first = 0; first < records.length; ) {
      await this.#pause();
      const next = endOfPiece(records, first);
      const isAll = first === 0 && next === records.length;
      const piece = await this.#parsePiece(rule, isAll ? records : records.slice(first, next), onUnused);
      if (isAll) return piece;
      for (const record of piece) parsed.push(moved(record, first));
      first = next;
    }
    return parsed;
  }

  async #parsePiece(rule: Rule, records: readonly RawRecord[], onUnused?: OnUnused): Promise<readonly ParsedRecord[]> {
    const { workers } = this.#options;
    if (!workers || !rule.isCostly(records)) return rule.parse(records, onUnused);
    try {
      const { parsed, unused } = await workers.run("parseRecords", { rule: plain(rule), records }, this.#runOptions());
      for (const field of unused) onUnused?.(field);
      return parsed;
    } catch (error) {
      // Other errors are caused by the parsing itself, which would do the same harm on this thread.
      if (!isAppError(error, "limited", "unavailable")) throw error;
      return rule.parse(records, onUnused);
    }
  }

  #runOptions(): RunOptions {
    const { tenant, signal } = this.#options;
    return { tenant, timeoutMs: PARSE_THREAD_TIMEOUT_MS, signal };
  }

  async #pause(): Promise<void> {
    const { clock } = this.#options;
    if (clock.monotonicMs() - this.#beganMs < PARSE_SLICE_MAX_MS) return;
    await setImmediate();
    this.#beganMs = clock.monotonicMs();
  }
}

/** The result belongs to this call, so it is changed in place: a copy costs as much as the parsing of a short record. */
function moved(record: { ordinal: number } & ParsedRecord, by: number): ParsedRecord {
  record.ordinal += by;
  return record;
}

const NO_BODIES = "This controller runs no bodies of rules.";

/** Plain data from which a worker thread can compile the rule. */
function plain({ digest, text, class: path, columns, timeColumns, supplements }: Rule): PlainRule {
  const { patterns, extension } = supplements;
  const used = extension === undefined ? { patterns } : { patterns, extension };
  return { digest, text, class: path, columns, timeColumns, supplements: used };
}

/** End of the next piece. It has at least one record, and otherwise at most `PARSE_PIECE_MAX_CHARACTERS`. */
function endOfPiece(records: readonly RawRecord[], first: number): number {
  let characters = 0;
  let next = first;
  while (next < records.length) {
    characters += records[next]?.text.length ?? 0;
    if (next > first && characters > PARSE_PIECE_MAX_CHARACTERS) break;
    next += 1;
  }
  return next;
}
