import { AppError, errorText, isAppError } from "../../../../common/errors.ts";
import {
  RULE_FORWARD_DEPTH_MAX,
  RULE_RESULT_MAX_CHARACTERS,
  RULE_SERIES_DEADLINE_MS,
  RULE_SERIES_MAX_CHARACTERS,
  RULE_SERIES_MAX_RECORDS,
  RULE_STEPS_MAX,
  TRIGGER_STOPPED_TOLD_MS,
} from "../../../../common/limits.ts";
import type { Value } from "../../../../common/value.ts";
import type { Runtime } from "../../../runtime.ts";
import type { HostObjects, ScriptEngine, ScriptHost, ScriptKind, ScriptOutcome } from "../../../scripting/index.ts";
import { audited, type RunTrail } from "../../audit/index.ts";
import { RunLogs, SCRIPT_LOG_BOUNDS, type ConsoleLogService } from "../../consolelog/index.ts";
import type { ClassCatalog, Objects } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { RULE_FRAMES } from "./frames.ts";
import type { RuleRun } from "./body-objects.ts";
import type { RuleMemory } from "./memory.ts";
import { readRuleText, retryOf, type RuleBody, type RuleRetry } from "../definitions/options.ts";
import { readResult, rowsOf, type BodyRecord, type Passed } from "./results.ts";
import type { ParsedRecord, ParsedRow, ParseFault, RawRecord, Rule, Rules } from "../types.ts";

export interface BodyDependencies {
  /** Absent: this controller runs no bodies. The records of rules with a body are errors. */
  readonly engine?: Pick<ScriptEngine, "runEach"> | undefined;
  /** The share of the script threads that bodies use; `rule` when absent. */
  readonly kind?: ScriptKind;
  readonly hostObjects: () => Pick<HostObjects, "bind">;
  /** The user with the current rights; `undefined` if the user does not exist or is not active. */
  readonly author: (tenant: string, user: string) => Promise<Principal | undefined>;
  readonly objects: Pick<Objects, "catalog">;
  readonly rules: Pick<Rules, "forwarded">;
  readonly logs: Pick<ConsoleLogService, "append">;
  readonly audit: RunTrail;
  readonly memory: RuleMemory;
  readonly runtime: Runtime;
}

/** Records of one rule that its options have already parsed. The body and forwarding come next. */
export interface BodyWork {
  readonly rule: Rule;
  readonly records: readonly RawRecord[];
  readonly parsed: readonly ParsedRecord[];
  readonly tenant: string;
  /** Keys of the rules that passed the records on, the first rule first. */
  readonly chain: readonly string[];
  readonly signal?: AbortSignal | undefined;
  /** Authors that were already looked up, by user name. Shared by all rules of one call. */
  readonly authors: Map<string, Principal>;
  /** Parses records by another rule, to which this rule passes them on. */
  readonly parse: (rule: Rule, records: readonly RawRecord[]) => Promise<readonly ParsedRecord[]>;
}

/** Runs bodies, and passes records on to other rules. Both have the rights of the rule's author. */
export class RuleBodies {
  readonly #with: BodyDependencies;
  readonly #logs: RunLogs;
  /** Time at which each rule without an active author last logged that it is stopped. */
  readonly #stopped = new Map<string, number>();

  constructor(dependencies: BodyDependencies) {
    const { logs, runtime } = dependencies;
    this.#with = dependencies;
    this.#logs = new RunLogs({ kind: "rule", logs, runtime }, SCRIPT_LOG_BOUNDS);
  }

  /**
   * Returns the rows and errors of all records. A failure of the body is an error of its record only.
   * `AppError("unavailable")` if the author is not active. Throws errors after which a repetition may succeed.
   */
  async work(work: BodyWork): Promise<readonly ParsedRecord[]> {
    const { rule, records, parsed, tenant } = work;
    const author = await this.#author(work);
    const passed = forwardedBy(rule, records);
    const made =
      rule.body === undefined
        ? parsed.map((one) => (one.ok ? withAuthor(one, author) : one))
        : await this.#run({
            ...work,
            body: rule.body,
            retry: retryOf(readRuleText(rule.text)),
            author,
            catalog: await this.#with.objects.catalog(author),
            passed,
          });
    return passed.length === 0 ? made : [...made, ...(await this.#passOn(passed, { ...work, author, tenant }))];
  }

  /** Runs the body for each record. Adds the records that it passes on to `passed`. */
  async #run(run: Running): Promise<readonly ParsedRecord[]> {
    const { parsed, records, rule, author, tenant } = run;
    const { engine } = this.#with;
    if (engine === undefined) return parsed.map(({ ordinal }) => ({ ok: false, ordinal, error: NO_BODIES }));
    const log = this.#logs.begin();
    const ofRule: RuleRun = { rule, memory: this.#with.memory };
    const host = this.#with.hostObjects().bind({
      principal: author,
      kind: "rule",
      about: ofRule,
      log: log.add,
      beforeChange: () => this.#with.audit.ready(tenant),
      load: (path) => Promise.reject(new AppError("unsupported", `A rule requires no other text such as ${path}.`)),
    });
    const call = {
      tenant,
      kind: this.#with.kind ?? "rule",
      user: author.user,
      language: run.body.language,
      name: rule.key,
      source: run.body.script,
      frame: RULE_FRAMES[run.body.language],
      results: ["RESULT"],
      timeoutMs: RULE_SERIES_DEADLINE_MS,
      depth: author.scriptDepth ?? 0,
      owner: author.user,
      stepsMax: RULE_STEPS_MAX[run.body.language],
      outputMaxCharacters: RULE_RESULT_MAX_CHARACTERS,
      ...(run.signal && { signal: run.signal }),
    } as const;
    const outcomes = new Map<number, ParsedRecord[]>();
    const series = async (piece: readonly BodyRecord[], recorded: ScriptHost): Promise<void> => {
      for (const [at, outcome] of (
        await this.#series(piece, (each) => engine.runEach({ ...call, each }, recorded))
      ).entries()) {
        const one = piece[at];
        if (one === undefined) continue;
        const { ordinal } = one.row;
        outcomes.set(ordinal, outcomeOf(outcome, one, run));
      }
    };
    const about = { principal: author, kind: "RULE", object: rule.key, permission: "rules:write", host } as const;
    await audited(this.#with.audit, about, async (recorded) => {
      try {
        for (const piece of pieces(parsed, records)) await series(piece, recorded);
      } finally {
        await this.#logs.keep(author, rule.key, log);
      }
    });
    return parsed.flatMap((one): readonly ParsedRecord[] => (one.ok ? (outcomes.get(one.ordinal) ?? []) : [one]));
  }

  /**
   * If a record ends the whole run, this splits the records into halves until that record is alone. So only that record
   * fails. A syntax error is the error of all records.
   */
  async #series(
    piece: readonly BodyRecord[],
    run: (each: readonly Readonly<Record<string, Value>>[]) => Promise<readonly (ScriptOutcome | AppError)[]>,
  ): Promise<readonly (ScriptOutcome | AppError)[]> {
    try {
      return await run(globalsOf(piece));
    } catch (error) {
      if (!isAppError(error) || isAppError(error, "unavailable", "limited", "cancelled")) throw error;
      if (isAppError(error, "syntax", "unsupported")) return piece.map(() => error);
      const half = piece.length >> 1;
      if (half === 0) return [error];
      return [...(await this.#series(piece.slice(0, half), run)), ...(await this.#series(piece.slice(half), run))];
    }
  }

  async #passOn(passed: readonly Passed[], work: BodyWork & { readonly author: Principal }): Promise<ParsedRecord[]> {
    const { rule, records, chain, author } = work;
    const made: ParsedRecord[] = [];
    for (const [key, group] of byRule(passed)) {
      try {
        const target = await this.#target(key, { rule, chain: [...chain, rule.key], author });
        const raw = group.flatMap(({ ordinal, text }) => {
          const record = records[ordinal];
          return record === undefined ? [] : [{ ...record, text }];
        });
        for (const one of await work.parse(target, raw)) {
          const from = group[one.ordinal];
          const part = `>${key}#${one.ordinal}${one.part ?? ""}`;
          made.push(passedRow(one, { part, ordinal: from?.ordinal ?? 0, target, author }));
        }
      } catch (error) {
        if (!isAppError(error) || isAppError(error, "unavailable", "limited", "cancelled", "deadline")) throw error;
        for (const { ordinal } of group) made.push({ ok: false, ordinal, error: errorText(error), part: `>${key}` });
      }
    }
    return made;
  }

  async #target(
    key: string,
    { rule, chain, author }: { readonly rule: Rule; readonly chain: readonly string[]; readonly author: Principal },
  ): Promise<Rule> {
    if (chain.includes(key)) throw new AppError("invalid", `${chain.join(" → ")} → ${key}: records go in a circle.`);
    if (chain.length > RULE_FORWARD_DEPTH_MAX)
      throw new AppError("limited", `A record goes through at most ${RULE_FORWARD_DEPTH_MAX} rules.`);
    return this.#with.rules.forwarded(author, rule, key);
  }

  /**
   * The principal of the rule's author. If the author is not active, this logs it and throws `AppError("unavailable")`.
   */
  async #author({ rule, tenant, authors }: BodyWork): Promise<Principal> {
    const { author: user = "" } = rule.supplements;
    const author = authors.get(user) ?? (await this.#with.author(tenant, user));
    if (author !== undefined) {
      authors.set(user, author);
      return author;
    }
    const message = `The rule ${rule.key} stands still: its author ${user} is not active.`;
    const { clock } = this.#with.runtime;
    const name = `${tenant} ${rule.key}`;
    if (clock.nowMs() - (this.#stopped.get(name) ?? -Infinity) >= TRIGGER_STOPPED_TOLD_MS) {
      this.#stopped.set(name, clock.nowMs());
      const log = this.#logs.begin();
      log.fail(message);
      const ospace = rule.key.slice(0, rule.key.indexOf("/rules/"));
      await this.#logs.keep({ tenant, ospace, traceparent: "" }, rule.key, log);
    }
    throw new AppError("unavailable", message);
  }
}

const NO_BODIES = "This controller runs no bodies of rules.";

interface Running extends BodyWork {
  readonly body: RuleBody;
  readonly retry: RuleRetry;
  readonly author: Principal;
  readonly catalog: ClassCatalog;
  readonly passed: Passed[];
}

function forwardedBy({ forwardTo }: Rule, records: readonly RawRecord[]): Passed[] {
  if (forwardTo.length === 0) return [];
  return records.flatMap(({ text }, ordinal) =>
    text.trim() === "" ? [] : forwardTo.map((key) => ({ ordinal, rule: key, text })),
  );
}

/** The row belongs to this call, so it is changed in place: a copy costs as much as the parsing of a short record. */
function withAuthor(row: { by?: Principal | undefined } & ParsedRow, author: Principal): ParsedRow {
  row.by = author;
  return row;
}

function byRule(passed: readonly Passed[]): ReadonlyMap<string, readonly Passed[]> {
  const groups = new Map<string, Passed[]>();
  for (const one of passed) {
    const group = groups.get(one.rule);
    if (group) group.push(one);
    else groups.set(one.rule, [one]);
  }
  return groups;
}

function outcomeOf(outcome: ScriptOutcome | AppError, of: BodyRecord, run: Running): ParsedRecord[] {
  const { ordinal } = of.row;
  const { onFailure, total, intervalMs } = run.retry;
  const again = { total, intervalMs };
  const failed = (error: AppError): ParsedRecord[] => [
    { ok: false, ordinal, error: errorText(error), ...placeOf(error), ...(onFailure && { again }) },
  ];
  if (outcome instanceof AppError) return failed(outcome);
  try {
    const result = readResult(outcome.results["RESULT"]);
    if (result.again !== undefined)
      return [{ ok: false, ordinal, error: `The rule asks for another try: ${result.again || "no reason"}.`, again }];
    for (const { rule, text } of result.passed) run.passed.push({ ordinal, rule, text });
    return result.isDropped || run.body.isIgnored ? [] : rowsOf(result, of, run);
  } catch (error) {
    if (!isAppError(error)) throw error;
    return failed(error);
  }
}

/** Place in the text of the rule at which its body failed, if the error names one. */
function placeOf({ details = {} }: AppError): Pick<ParseFault, "at"> {
  const { line, column } = details;
  return typeof line === "number" && typeof column === "number" ? { at: { line, column } } : {};
}

function passedRow(
  one: ParsedRecord,
  { part, ordinal, target, author }: { part: string; ordinal: number; target: Rule; author: Principal },
): ParsedRecord {
  // A passed-on record is written with the rights of the author of the rule that passes it on.
  if (!one.ok) return { ...one, ordinal, part };
  const { withoutRawBytes } = target;
  return {
    ...one,
    ...{ ordinal, part, class: one.class ?? target.class, by: author },
    ...(withoutRawBytes && { withoutRawBytes }),
  };
}

function* pieces(parsed: readonly ParsedRecord[], records: readonly RawRecord[]): Generator<readonly BodyRecord[]> {
  let piece: BodyRecord[] = [];
  let characters = 0;
  for (const row of parsed) {
    const record = row.ok ? records[row.ordinal] : undefined;
    if (!row.ok || record === undefined) continue;
    const isFull =
      piece.length >= RULE_SERIES_MAX_RECORDS || characters + record.text.length > RULE_SERIES_MAX_CHARACTERS;
    if (isFull && piece.length > 0) {
      yield piece;
      piece = [];
      characters = 0;
    }
    piece.push({ record, row });
    characters += record.text.length;
  }
  if (piece.length > 0) yield piece;
}

function globalsOf(piece: readonly BodyRecord[]): readonly Readonly<Record<string, Value>>[] {
  // Records that came together mostly have the same time.
  let [digits, digitsMs] = ["", Number.NaN];
  return piece.map(({ record, row }) => {
    const { text, timeMs, host, source, groups } = record;
    if (timeMs !== digitsMs) digits = new Date(timeMs).toISOString().replace(/\D/g, "");
    digitsMs = timeMs;
    return { OBJECT: row.fields ?? {}, RECORD: [text, host, source, timeMs, digits, groups] };
  });
}
