import type { Logger } from "pino";
import { AppError, type ErrorCode, ERROR_CODES, errorText, isAppError } from "../../common/errors.ts";
import {
  SCRIPT_CALL_MAX_CHARACTERS,
  SCRIPT_DEPTH_MAX,
  SCRIPT_SOURCE_MAX_BYTES,
  SCRIPT_NATIVE_MAX_MS,
  SCRIPT_STANDING_AFTER_MS,
  SCRIPT_STANDING_BRIEFLY_AFTER_MS,
  SCRIPT_STOP_GRACE_MS,
  SCRIPT_THREADS,
  WORKER_CLOSE_DEADLINE_MS,
  SCRIPT_VALUE_MAX_DEPTH,
  SCRIPT_VALUE_MAX_MEMBERS,
  SCRIPT_OUTPUT_MAX_CHARACTERS,
} from "../../common/limits.ts";
import type { JsonBounds } from "../../common/json-decoder.ts";
import type { Clock, Random } from "../../common/time.ts";
import type { Value } from "../../common/value.ts";
import { decodeJson, encodeJson } from "../turns/decoding.ts";
import { ThreadSlices } from "../turns/slices.ts";
import { type CallRequest, openCallLine, type PoolLimits, type Stand, WorkerPool } from "../workers/index.ts";
import { SCRIPT_POOL_LIMITS, shareOf } from "./shares.ts";
import type { CallFailure, ScriptFailure, ScriptInput, ScriptReport, ScriptTask } from "./task.ts";
import type {
  HostFunctionName,
  ScriptCall,
  ScriptEngine,
  ScriptHost,
  ScriptLanguage,
  ScriptOutcome,
  ScriptSeries,
} from "./types.ts";
import { watchRun } from "./watch.ts";

/**
 * Bounds on decoded JSON from a script's thread. They are slightly wider than the bounds of values, because the values
 * are inside a list of arguments or an object of results.
 */
const HANDED_OVER: JsonBounds = {
  depth: { name: "SCRIPT_VALUE_MAX_DEPTH", max: SCRIPT_VALUE_MAX_DEPTH + 2 },
  members: { name: "SCRIPT_VALUE_MAX_MEMBERS", max: 2 * SCRIPT_VALUE_MAX_MEMBERS },
  elements: { name: "SCRIPT_VALUE_MAX_MEMBERS", max: 2 * SCRIPT_VALUE_MAX_MEMBERS },
  stringCharacters: { name: "SCRIPT_CALL_MAX_CHARACTERS", max: SCRIPT_OUTPUT_MAX_CHARACTERS },
};

type LanguageTasks = { readonly [language in ScriptLanguage]: ScriptTask };

export interface ScriptEngineOptions {
  /** The built `script-worker.ts`. */
  readonly file: URL | string;
  readonly languages: readonly ScriptLanguage[];
  /** Called once, before the first script. */
  readonly functions: () => readonly HostFunctionName[];
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Pick<Logger, "warn">;
  /** See `watchRun`. */
  readonly processorMs?: (thread: number | undefined) => number;
  /** Gives a thread less of a busy processor. Returns false if the system does not do that. */
  readonly lowerPriority?: (thread: number) => boolean;
  /** Number of threads for each depth; `SCRIPT_THREADS` if absent. */
  readonly threads?: number;
  readonly limits?: Partial<PoolLimits>;
}

/** Runs scripts in threads. Each depth has its own pool. */
export class ThreadScripts implements ScriptEngine {
  readonly #options: ScriptEngineOptions;
  /** Pools by depth. */
  readonly #pools = new Map<number, WorkerPool<LanguageTasks>>();
  #closed = false;

  constructor(options: ScriptEngineOptions) {
    this.#options = options;
  }

  /** Number of existing threads. */
  get threads(): number {
    return this.#sum((pool) => pool.threads);
  }

  /** Number of threads that had to be terminated. */
  get ended(): number {
    return this.#sum((pool) => pool.ended);
  }

  get running(): number {
    return this.#sum((pool) => pool.running);
  }

  get waiting(): number {
    return this.#sum((pool) => pool.waiting);
  }

  async run(call: ScriptCall, host: ScriptHost): Promise<ScriptOutcome> {
    const report = await this.#report(call, { globals: JSON.stringify(call.globals) }, host);
    if ("results" in report) return outcomeOf(report.results, this.#slices(call));
    throw new AppError("internal", `${call.name} was run as a series.`);
  }

  async runEach(series: ScriptSeries, host: ScriptHost): Promise<readonly (ScriptOutcome | AppError)[]> {
    const { frame, each, stepsMax, outputMaxCharacters } = series;
    const lines = each.map((globals) => JSON.stringify(globals));
    const runs = { globals: "{}", frame, each: lines, stepsMax, outputMaxCharacters };
    const report = await this.#report(series, runs, host);
    if (!("reports" in report)) throw new AppError("internal", `${series.name} was not run as a series.`);
    const slices = this.#slices(series);
    const outcomes: (ScriptOutcome | AppError)[] = [];
    for (const one of report.reports) {
      outcomes.push("results" in one ? await outcomeOf(one.results, slices) : errorOf(one.failure));
      if (slices.isOverNow()) await slices.pause();
    }
    return outcomes;
  }

  /** Returns the report of the thread. Throws if the call failed as a whole. */
  async #report(
    call: Omit<ScriptCall, "globals">,
    runs: RunsInput,
    host: ScriptHost,
  ): Promise<Exclude<ScriptReport, { readonly failure: ScriptFailure }>> {
    const { clock, processorMs, lowerPriority } = this.#options;
    this.#check(call);
    const pool = this.#pool(call.depth ?? 0);
    const over = new AbortController();
    let stands: Stand = false;
    const stand = (how: Stand): void => {
      stands = how;
      if (how) pool.heed();
    };
    const line = openCallLine(async (request) => {
      const arrived = afterWaits(clock, stand);
      const slices = this.#slices({ tenant: call.tenant, signal: over.signal });
      const answer = await answerOf(host, request, { signal: over.signal, slices });
      arrived();
      return answer;
    });
    let reason: AppError | undefined;
    let forget = (): void => {};
    const end = new AbortController();
    const stop = (why: AppError): void => {
      if (reason) return;
      reason = why;
      over.abort(why);
      line.stop();
      forget = clock.after(SCRIPT_STOP_GRACE_MS, () => end.abort());
    };
    const cancel = (): void => stop(new AppError("cancelled", `${call.name} was cancelled.`));
    const late = clock.after(call.timeoutMs, () => stop(tooLate(call)));
    let hasLowPriority = false;
    const unwatch = watchRun({
      clock,
      line,
      nativeMaxMs: SCRIPT_NATIVE_MAX_MS[call.language],
      processorMs,
      onNative: () => {
        stop(outOfReach(call));
        end.abort();
      },
      onLong: (thread) => (hasLowPriority = lowerPriority?.(thread) ?? false),
    });
    call.signal?.addEventListener("abort", cancel, { once: true });
    try {
      const report = await pool.run(call.language, this.#input(call, runs, line), {
        tenant: call.tenant,
        share: shareOf(call),
        timeoutMs: call.timeoutMs + 2 * SCRIPT_STOP_GRACE_MS,
        signal: end.signal,
        stands: () => stands,
        // The system may not allow to raise the priority again.
        spendsThread: () => hasLowPriority,
        transfer: [line.port],
      });
      if (!("failure" in report) && !reason) return report;
      throw "failure" in report ? errorOf(report.failure) : reason;
    } catch (error) {
      throw reason ?? error;
    } finally {
      late();
      unwatch();
      forget();
      call.signal?.removeEventListener("abort", cancel);
      over.abort(RUN_OVER);
      line.close();
    }
  }

  #slices({ tenant, signal }: Pick<ScriptCall, "tenant" | "signal">): ThreadSlices {
    return new ThreadSlices({ tenant, clock: this.#options.clock, signal });
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(Array.from(this.#pools.values(), (pool) => pool.close(WORKER_CLOSE_DEADLINE_MS)));
  }

  #input(
    { name, source, results, tenant, owner }: Omit<ScriptCall, "globals">,
    runs: RunsInput,
    { port, state }: ReturnType<typeof openCallLine>,
  ) {
    const [a = 0, b = 0, c = 0, d = 0] = this.#options.random.bytes(4);
    const seed = (a << 24) | (b << 16) | (c << 8) | d;
    return {
      tenant,
      name,
      source,
      ...runs,
      results,
      seed,
      line: { port, state },
      owner: owner && `${tenant}/${owner}`,
    };
  }

  #check({ name, language, source, depth = 0, signal }: Omit<ScriptCall, "globals">): void {
    if (signal?.aborted) throw new AppError("cancelled", `${name} was cancelled.`);
    if (this.#closed) throw new AppError("unavailable", "The controller stops.");
    if (!this.#options.languages.includes(language))
      throw new AppError("unsupported", `Scripts in ${language} are not offered here.`);
    if (source.length > SCRIPT_SOURCE_MAX_BYTES)
      throw tooLarge(`${name} has more than ${SCRIPT_SOURCE_MAX_BYTES} characters.`, "SCRIPT_SOURCE_MAX_BYTES");
    if (depth <= SCRIPT_DEPTH_MAX) return;
    const message = `${name} would be the ${depth + 1}th script of a chain in which each waits for the next.`;
    throw new AppError("limited", message, { details: { limit: "SCRIPT_DEPTH_MAX" } });
  }

  #pool(depth: number): WorkerPool<LanguageTasks> {
    const known = this.#pools.get(depth);
    if (known) return known;
    const { file, functions, clock, log, threads = SCRIPT_THREADS, limits } = this.#options;
    const pool = new WorkerPool<LanguageTasks>({
      file,
      threads,
      clock,
      log,
      data: { functions: functions() },
      limits: { ...SCRIPT_POOL_LIMITS, ...limits },
    });
    this.#pools.set(depth, pool);
    return pool;
  }

  #sum(of: (pool: WorkerPool<LanguageTasks>) => number): number {
    let sum = 0;
    for (const pool of this.#pools.values()) sum += of(pool);
    return sum;
  }
}

/** Shared by all runs: an abort without a reason would create an error with a stack trace for each run. */
const RUN_OVER = new AppError("cancelled", "The script is over.");

/** Reports that a run waits for a host call, briefly and then longer. The returned function reports the answer. */
function afterWaits(clock: Clock, stand: (how: Stand) => void): () => void {
  let leave = clock.after(SCRIPT_STANDING_BRIEFLY_AFTER_MS, () => {
    stand("briefly");
    leave = clock.after(SCRIPT_STANDING_AFTER_MS - SCRIPT_STANDING_BRIEFLY_AFTER_MS, () => stand(true));
  });
  return () => {
    leave();
    stand(false);
  };
}

type RunsInput = Pick<ScriptInput, "globals" | "frame" | "each" | "stepsMax" | "outputMaxCharacters">;

async function outcomeOf(results: string, slices: ThreadSlices): Promise<ScriptOutcome> {
  return { results: (await handedOver(results, slices)) as Record<string, Value> };
}

/** Decodes a text from a script's thread, which enforces the bounds before it sends. */
function handedOver(text: string, slices: ThreadSlices): Promise<unknown> {
  return decodeJson(text, { slices, bounds: HANDED_OVER });
}

interface Answering {
  readonly signal: AbortSignal;
  readonly slices: ThreadSlices;
}

async function answerOf(
  host: ScriptHost,
  { name, args, at }: CallRequest,
  { signal, slices }: Answering,
): Promise<string> {
  try {
    const value = await host.call({ name, args: (await handedOver(args, slices)) as readonly Value[], at, signal });
    if (value === undefined) return "";
    const text = await encodeJson(value, slices);
    if (text.length > SCRIPT_CALL_MAX_CHARACTERS)
      throw tooLarge(`The answer of ${name} is too large.`, "SCRIPT_CALL_MAX_CHARACTERS");
    return `=${text}`;
  } catch (error) {
    return `!${JSON.stringify(callFailure(error))}`;
  }
}

function callFailure(error: unknown): CallFailure {
  if (!isAppError(error)) return { message: errorText(error), code: "internal" };
  const details = Object.entries(error.details ?? {}).filter(([, value]) =>
    ["string", "number", "boolean"].includes(typeof value),
  ) as [string, string | number | boolean][];
  return { message: error.message, code: error.code, details: Object.fromEntries(details) };
}

function errorOf(failure: ScriptFailure): AppError {
  const { kind, message, limit = "", code, details, file, line, column } = failure;
  if (kind === "stopped") return new AppError("internal", message);
  if (kind === "memory") return tooLarge(message, "SCRIPT_MEMORY_MAX_BYTES");
  if (kind === "endless") return tooLarge(message, "RULE_STEPS_MAX");
  if (kind === "output") return tooLarge(message, limit);
  const place = file === undefined ? {} : { file, line, column };
  const where = file === undefined ? "" : `${file}:${line}:${column}: `;
  const known = code !== undefined && Object.hasOwn(ERROR_CODES, code) ? (code as ErrorCode) : "invalid";
  return new AppError(kind === "syntax" ? "syntax" : known, `${where}${message}`, {
    details: { ...details, ...(file !== undefined && innerPlace(details)), ...place },
  });
}

/** The place in a text that the script passed to a host call, such as MQL. The place in the script takes its members. */
function innerPlace({ line, column }: NonNullable<ScriptFailure["details"]> = {}): object {
  return line === undefined ? {} : { within: { line, column } };
}

function tooLarge(message: string, limit: string): AppError {
  return new AppError("too_large", message, { details: { limit } });
}

function outOfReach({ name, language }: Pick<ScriptCall, "name" | "language">): AppError {
  const what = `${name} was ended: for more than ${SCRIPT_NATIVE_MAX_MS[language]} ms it was in built-in functions`;
  const why = "where it cannot be stopped. Patterns that can be tried in many ways, and long texts, take such times.";
  return new AppError("deadline", `${what}, ${why}`, { details: { limit: "SCRIPT_NATIVE_MAX_MS" } });
}

function tooLate({ name, timeoutMs }: Pick<ScriptCall, "name" | "timeoutMs">): AppError {
  return new AppError("deadline", `${name} was not done within ${timeoutMs} ms.`);
}
