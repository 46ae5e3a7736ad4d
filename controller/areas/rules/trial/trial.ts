import { setImmediate } from "node:timers/promises";
import { AppError, errorText, isAppError } from "../../../../common/errors.ts";
import {
  PARSE_THREAD_TIMEOUT_MS,
  RECENT_RECORDS_DEFAULT,
  RULE_TRIAL_MAX_CHARACTERS,
  RULE_TRIAL_MAX_LINES,
} from "../../../../common/limits.ts";
import type { Value } from "../../../../common/value.ts";
import type { HostObjects, HostRun } from "../../../scripting/index.ts";
import type { Workers } from "../../../workers/index.ts";
import { LEVELS } from "../../consolelog/index.ts";
import type { Objects } from "../../objects/index.ts";
import { readingOnly, requirePermission, type Principal } from "../../permissions/index.ts";
import { canonicalRow, type GatedRow, rowGate } from "../../query/index.ts";
import { type GrokMatch, type GrokTrial, grokTrial } from "../grok/trial.ts";
import { RuleBodies, type BodyDependencies } from "../bodies/bodies.ts";
import { RuleMemory } from "../bodies/memory.ts";
import type { PolicySamples } from "./samples.ts";
import type { RuleService } from "../service.ts";
import { HeadingLine } from "../parsing/csv-lines.ts";
import { PathWatch } from "../definitions/paths.ts";
import { ParseSlices } from "../parsing/slices.ts";
import type { RuleTasks } from "../tasks.ts";
import { refusedTime } from "../definitions/times.ts";
import type { ParsedRecord, ParsedRow, ParseFault, RawRecord, Rule } from "../types.ts";

export interface TrialRequest {
  /** Key of a stored rule. With `text`, the key under which the text would be stored. */
  readonly key?: string | undefined;
  /** Text of the rule. Absent: the stored text. */
  readonly text?: string | undefined;
  /** A grok expression to try instead of a rule. */
  readonly pattern?: string | undefined;
  /** Sample records. Absent: the records of `policy` are used. */
  readonly lines?: readonly string[] | undefined;
  /** Policy whose latest raw records are the sample. Its rule is tried if `key` and `text` are absent. */
  readonly policy?: string | undefined;
  /** Number of raw records of the policy; absent: `RECENT_RECORDS_DEFAULT`. */
  readonly last?: number | undefined;
  readonly host?: string | undefined;
  readonly source?: string | undefined;
  /** Named groups of a log policy's file match, for the lines. */
  readonly groups?: Readonly<Record<string, string>> | undefined;
  readonly signal: AbortSignal;
}

export interface TrialRow {
  readonly class: string;
  readonly values: Record<string, Value>;
  /** Time of a record by `--time`, in milliseconds since 1970. Absent without such a time. */
  readonly time?: number;
}

export interface TrialError {
  readonly message: string;
  /** Line in the text of the rule where its body failed. */
  readonly line?: number;
  readonly column?: number;
}

/** Result of one line. It has neither rows nor errors if the rule leaves the line out. */
export interface TrialRecord {
  /** Line number, from 1. */
  readonly line: number;
  /** Raw record of a policy. `time`: when its agent read it, in milliseconds since 1970. */
  readonly raw?: { readonly text: string; readonly time: number; readonly host: string; readonly source: string };
  /** Fields that `pattern` captured, by name. */
  readonly fields?: Readonly<Record<string, string | number>>;
  readonly rows: TrialRow[];
  readonly errors: TrialError[];
}

export interface TrialResult {
  /** Class of the rule. Empty for a pattern, and for a rule whose body names the classes. */
  readonly class: string;
  readonly records: TrialRecord[];
  /** Entries that bodies would have written to their console log. */
  readonly log: { level: string; msg: string }[];
  /** Names of host functions that bodies called but that a trial does not execute. */
  readonly notCalled: string[];
  /** Average time for one line, in milliseconds. */
  readonly msPerRecord: number;
  /** Texts about missing records of the policy, unreadable times, and nested members that no line has. */
  readonly warnings: readonly string[];
}

interface Sample {
  /** Key of the policy's rule, which is tried if the request names none. */
  readonly rule?: string | undefined;
  readonly records: readonly RawRecord[];
  readonly warnings: readonly string[];
}

type Bound = Pick<HostObjects, "bind">;

interface TrialDependencies
  extends Omit<BodyDependencies, "engine" | "author" | "logs" | "audit" | "memory" | "objects"> {
  readonly engine?: BodyDependencies["engine"] | undefined;
  readonly rules: RuleService;
  readonly objects: Objects;
  /** Absent: there are no policies. */
  readonly samples?: Pick<PolicySamples, "last"> | undefined;
  readonly workers?: Workers<RuleTasks> | undefined;
}

/** A trial changes nothing, so it writes no audit entries. */
const UNAUDITED = { ready: () => Promise.resolve(), record: () => Promise.resolve() };

/** Host functions with an effect outside of the controller. */
const OUTWARD = new Set(["websocket.send", "message.send", "nats.send"]);

/** Tries rules on sample lines. Nothing is stored, and only the caller sees the result. */
export class RuleTrials {
  readonly #with: TrialDependencies;

  constructor(dependencies: TrialDependencies) {
    this.#with = dependencies;
  }

  /**
   * Tries the rule. Bodies run with the read rights of the caller, not with the rights of their authors. A row that the
   * caller may not write is an error of its line. `AppError("too_large")` beyond `RULE_TRIAL_MAX_LINES` or
   * `RULE_TRIAL_MAX_CHARACTERS`. Also throws the errors of `RuleService.put` and `load`, and of `PolicySamples`.
   */
  async run(principal: Principal, request: TrialRequest): Promise<TrialResult> {
    requirePermission(principal, "rules:write");
    if (request.pattern !== undefined) return this.#pattern(principal, request, request.pattern);
    const sample = await this.#sample(principal, request);
    const rule = await this.#rule(principal, { ...request, key: request.key ?? sample.rule });
    const isShown = request.lines === undefined;
    const result = await this.#tried(principal, rule, {
      raw: isShown ? sample.records : headed(rule, sample.records),
      isShown,
      signal: request.signal,
    });
    return { ...result, warnings: [...sample.warnings, ...result.warnings] };
  }

  /**
   * Tries a stored rule on records that the caller has read from a host. Rights of bodies and rows as of `run`, but the
   * caller needs the right to save policies. Throws the errors of `RuleService.load`, and `AppError("too_large")` as
   * `run` does.
   */
  async ofRecords(
    principal: Principal,
    key: string,
    { raw, signal }: { readonly raw: readonly RawRecord[]; readonly signal: AbortSignal },
  ): Promise<TrialResult> {
    requirePermission(principal, "policies:write");
    checkSize(raw.map(({ text }) => text));
    const rule = await this.#with.rules.load(principal, key);
    return this.#tried(principal, rule, { raw, isShown: true, signal });
  }

  async #tried(
    principal: Principal,
    rule: Rule,
    {
      raw,
      isShown,
      signal,
    }: { readonly raw: readonly RawRecord[]; readonly isShown: boolean; readonly signal: AbortSignal },
  ): Promise<TrialResult> {
    const { clock } = this.#with.runtime;
    const said: { level: string; msg: string }[] = [];
    const notCalled = new Set<string>();
    const bodies = this.#bodies(principal, { said, notCalled });
    const slices = new ParseSlices({ clock, tenant: principal.tenant, workers: this.#with.workers, bodies, signal });
    const beganMs = clock.monotonicMs();
    const parsed = await slices.parse(rule, raw);
    const msPerRecord = (clock.monotonicMs() - beganMs) / Math.max(1, raw.length);
    const records = raw.map((one, at) => untold(one, { line: at + 1, isShown }));
    for (const one of parsed) await this.#tell(principal, { rule, one, record: records[one.ordinal] });
    const paths = new PathWatch(rule);
    paths.see(parsed);
    const told = [...misdatedLines(parsed), ...paths.warnings()];
    return { class: rule.class, records, log: said, notCalled: [...notCalled], msPerRecord, warnings: told };
  }

  /** Requires no rights on a class, because the caller already sees the sample that the pattern captures from. */
  async #pattern(principal: Principal, request: TrialRequest, expression: string): Promise<TrialResult> {
    if (request.key !== undefined || request.text !== undefined)
      throw new AppError("invalid", "Give either pattern, or the rule to try by key or text.");
    const { rules, runtime } = this.#with;
    const { records: raw, warnings } = await this.#sample(principal, request);
    const patterns = await rules.patternsReached(principal, expression);
    const trial = { expression, patterns, nowMs: runtime.clock.nowMs() };
    const beganMs = runtime.clock.monotonicMs();
    const lines = raw.map(({ text }) => text);
    const matches = await this.#matches(principal, { trial, lines, signal: request.signal });
    const msPerRecord = (runtime.clock.monotonicMs() - beganMs) / Math.max(1, raw.length);
    const isShown = request.lines === undefined;
    const records = raw.map((one, at) => matched(untold(one, { line: at + 1, isShown }), matches[at]));
    return { class: "", records, log: [], notCalled: [], msPerRecord, warnings };
  }

  /**
   * Matches the lines on a worker thread, because a line may take long. Without a thread, matches them here and lets
   * other work run after each line.
   */
  async #matches(
    { tenant }: Principal,
    {
      trial,
      lines,
      signal,
    }: { readonly trial: GrokTrial; readonly lines: readonly string[]; readonly signal: AbortSignal },
  ): Promise<readonly GrokMatch[]> {
    const { workers } = this.#with;
    try {
      const options = { tenant, timeoutMs: PARSE_THREAD_TIMEOUT_MS, signal };
      if (workers) return await workers.run("matchGrok", { trial, lines }, options);
    } catch (error) {
      if (!isAppError(error, "limited", "unavailable")) throw error;
    }
    const match = grokTrial(trial);
    const matches: GrokMatch[] = [];
    for (const line of lines) {
      signal.throwIfAborted();
      matches.push(match(line));
      await setImmediate();
    }
    return matches;
  }

  async #sample(principal: Principal, request: TrialRequest): Promise<Sample> {
    const { lines, policy, last = RECENT_RECORDS_DEFAULT } = request;
    const { samples, runtime } = this.#with;
    if ((lines === undefined) === (policy === undefined))
      throw new AppError("invalid", "Give either lines, the sample, or policy, whose latest records are the sample.");
    if (policy !== undefined && samples === undefined) throw new AppError("unsupported", "There are no policies here.");
    if (policy !== undefined && samples !== undefined) return samples.last(principal, policy, last);
    checkSize(lines ?? []);
    return { records: recordsOf(request, runtime.clock.nowMs()), warnings: [] };
  }

  async #rule(principal: Principal, { key, text }: TrialRequest): Promise<Rule> {
    const { rules } = this.#with;
    if (text !== undefined) return rules.given(principal, key ?? `${principal.ospace}/rules/untitled`, text);
    if (key === undefined) throw new AppError("invalid", "Give key, the rule to try, or text, or pattern.");
    return rules.load(principal, key);
  }

  #bodies(
    principal: Principal,
    { said, notCalled }: { readonly said: TrialResult["log"]; readonly notCalled: Set<string> },
  ): RuleBodies {
    const { engine, hostObjects, objects, rules, runtime } = this.#with;
    const reader = readingOnly(principal, "A trial of a rule changes nothing.");
    return new RuleBodies({
      engine,
      // A user waits for the trial, so it must not delay records of policies.
      kind: "serverjs",
      hostObjects: () => ({ bind: (run) => withoutEffect(hostObjects(), run, notCalled) }),
      author: () => Promise.resolve(reader),
      objects,
      rules,
      logs: {
        append: (_of, { entries }) => {
          said.push(...entries.map(({ level, msg }) => ({ level: LEVELS[level] ?? String(level), msg })));
          return Promise.resolve();
        },
      },
      audit: UNAUDITED,
      memory: new RuleMemory(runtime.clock),
      runtime,
    });
  }

  async #tell(
    principal: Principal,
    { rule, one, record }: { rule: Rule; one: ParsedRow | ParseFault; record: TrialRecord | undefined },
  ): Promise<void> {
    if (!one.ok) {
      const { error: message, at } = one;
      record?.errors.push({ message, ...at });
      return;
    }
    const { class: path = rule.class, values, timeMs: time } = one;
    const refused = time === undefined ? undefined : refusedTime(time, this.#with.runtime.clock.nowMs());
    if (refused !== undefined) {
      record?.errors.push({ message: refused });
      return;
    }
    try {
      const checked = await this.#checked(principal, path, { values, timeMs: time });
      record?.rows.push({ class: path, values: checked, ...(time !== undefined && { time }) });
    } catch (error) {
      if (!isAppError(error)) throw error;
      record?.errors.push({ message: errorText(error) });
    }
  }

  /** Returns the values in their stored form. Throws if the caller may not write the row. */
  async #checked(principal: Principal, path: string, row: GatedRow): Promise<Record<string, Value>> {
    const { objects, runtime } = this.#with;
    const catalog = await objects.catalog(principal);
    await rowGate({ principal, catalog }, path, { objects, clock: runtime.clock }).check([row]);
    const { values } = row;
    const view = catalog.get(path);
    return view === undefined ? { ...values } : { ...canonicalRow(view, values) };
  }
}

/** Warnings about records that would get the time of reading. */
function misdatedLines(parsed: readonly ParsedRecord[]): readonly string[] {
  const told = parsed.flatMap((one) =>
    one.ok && one.timeFault !== undefined ? `Line ${one.ordinal + 1} has the time of reading: ${one.timeFault}` : [],
  );
  return [...new Set(told)];
}

/** Host functions for a run that change nothing, neither in the controller nor outside. */
function withoutEffect(objects: Bound, run: HostRun, notCalled: Set<string>): ReturnType<HostObjects["bind"]> {
  const beforeChange = (): Promise<void> =>
    Promise.reject(new AppError("denied", "A trial of a rule changes nothing."));
  const bound = objects.bind({ ...run, beforeChange });
  const call: typeof bound.call = async (asked) => {
    if (!OUTWARD.has(asked.name)) return bound.call(asked);
    notCalled.add(asked.name);
    return undefined;
  };
  return { ...bound, call };
}

/** Treats the given lines as those of one call, so the first one may be the heading line. */
function headed(rule: Rule, raw: readonly RawRecord[]): readonly RawRecord[] {
  const found = new HeadingLine(rule.csv, { isWhole: false });
  const lines = found.take(raw.map(({ text }) => text));
  return raw.map((record, at) => ({ ...record, ...lines[at] }));
}

function untold(
  { text, timeMs: time, host, source }: RawRecord,
  { line, isShown }: { readonly line: number; readonly isShown: boolean },
): TrialRecord {
  return { line, ...(isShown && { raw: { text, time, host, source } }), rows: [], errors: [] };
}

function matched(record: TrialRecord, match: GrokMatch | undefined): TrialRecord {
  if (match === undefined) return record;
  return "error" in match ? { ...record, errors: [{ message: match.error }] } : { ...record, fields: match.fields };
}

function recordsOf({ lines = [], host = "", source = "", groups = {} }: TrialRequest, timeMs: number): RawRecord[] {
  return lines.map((text) => ({ text, timeMs, host, source, groups }));
}

function checkSize(lines: readonly string[]): void {
  const characters = lines.reduce((sum, line) => sum + line.length, 0);
  if (lines.length > RULE_TRIAL_MAX_LINES)
    throw tooMuch(`A trial takes at most ${RULE_TRIAL_MAX_LINES} lines.`, "RULE_TRIAL_MAX_LINES");
  if (characters > RULE_TRIAL_MAX_CHARACTERS)
    throw tooMuch(
      `The lines of a trial have at most ${RULE_TRIAL_MAX_CHARACTERS} characters.`,
      "RULE_TRIAL_MAX_CHARACTERS",
    );
}

function tooMuch(message: string, limit: string): AppError {
  return new AppError("too_large", message, { details: { limit } });
}
