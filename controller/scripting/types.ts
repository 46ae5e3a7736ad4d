import type { AppError } from "../../common/errors.ts";
import type { Value } from "../../common/value.ts";

export type ScriptLanguage = "javascript" | "lua";

/** What runs a script, and decides which host objects it finds. */
export type ScriptKind = "serverjs" | "trigger" | "rule";

/** One run of one script. */
export interface ScriptCall {
  /** The tenant whose run it is: tenants get the threads in rotation. */
  readonly tenant: string;
  /** Each kind of a tenant has its share of the threads. What a user waits for is `serverjs`, whatever its text is. */
  readonly kind: ScriptKind;
  /** The user with whose rights it runs. Each user has a share of the threads of a kind. */
  readonly user: string;
  readonly language: ScriptLanguage;
  /** For errors and positions: the path of its file, or another name. */
  readonly name: string;
  readonly source: string;
  /** Global variables it finds; names are identifiers of the language. */
  readonly globals: Readonly<Record<string, Value>>;
  /** Global variables that are answered. */
  readonly results: readonly string[];
  /** From the call to the answer, waiting for a thread and for host calls included. */
  readonly timeoutMs: number;
  /**
   * How many scripts wait for this one, each in a host call: `scriptDepth` of the principal that is its cause. Runs of
   * different depths share no thread, so that the script which waits never holds what it waits for.
   */
  readonly depth?: number;
  readonly signal?: AbortSignal;
  /** Runs of one owner and text may share what the language prepares; absent: nothing is shared. */
  readonly owner?: string;
}

export interface HostCall {
  /** `object.function`, or `require` for the text of another script: answers `{name, source}`. */
  readonly name: string;
  readonly args: readonly Value[];
  /** `/path.js:line:column` of the call, for functions that ask for it. */
  readonly at?: string | undefined;
  /** Fires when the script is over before the call is. */
  readonly signal: AbortSignal;
}

/** What a script reaches. It runs on the thread that answers calls, and bears the principal. */
export interface ScriptHost {
  /** To the script the answer is there at once. What is thrown is thrown in the script. */
  call(call: HostCall): Promise<Value | undefined>;
}

export interface ScriptOutcome {
  /** A variable without a value is absent. */
  readonly results: Readonly<Record<string, Value>>;
}

/** One text to run for many records; `globals` of the call are left out, `timeoutMs` is that of all runs together. */
export interface ScriptSeries extends Omit<ScriptCall, "globals"> {
  /**
   * A text of ours that stands around each run and is not the user's: an expression of JavaScript, a function of the
   * global object that answers `{begin, finish}`; a text of Lua that answers `{begin, finish, functions, libraries}`,
   * whose functions get the table of globals. `begin` is called before a run, when its globals are there, `finish`
   * after it, before its results are read. What it says of one run does not hold for the next: in Lua `begin` must
   * forget, as the same frame stands around all.
   */
  readonly frame?: string;
  /** The global variables of each run. */
  readonly each: readonly Readonly<Record<string, Value>>[];
  /** How often one run is asked whether it is to stop; one that goes on beyond fails. A count, not a time: it is the same when the run is repeated. */
  readonly stepsMax: number;
  /** What one run answers, as JSON. */
  readonly outputMaxCharacters: number;
}

/** Names of the functions a host answers. */
export interface HostFunctionName {
  readonly object: string;
  readonly name: string;
  /** Whether it is told where it was called. */
  readonly positioned?: boolean;
}

/**
 * Runs scripts that know nothing of each other: each begins with the same globals, whatever ran before. Several runs
 * may be under way at once.
 */
export interface ScriptEngine {
  /**
   * Errors: `syntax` when the text does not parse; `invalid` with what the script threw, or what a host call threw in
   * it (its code is kept); both with details `file`, `line`, `column` as far as known. `too_large` with the name of the
   * limit on memory, output or calls; `deadline`, with `SCRIPT_NATIVE_MAX_MS` where the script could not be stopped;
   * `cancelled` by the signal; `limited` while the queue is full, and beyond `SCRIPT_DEPTH_MAX`; `unsupported` for a
   * language that is not offered; `unavailable` when the engine closes.
   */
  run(call: ScriptCall, host: ScriptHost): Promise<ScriptOutcome>;
  /**
   * Runs a text once for each set of globals, one after the other on one thread, as if each run had been called alone.
   * In their order: the outcome of each, or why it has none. Errors of the whole are those of `run`; by the deadline and
   * the signal all of it ends.
   */
  runEach(series: ScriptSeries, host: ScriptHost): Promise<readonly (ScriptOutcome | AppError)[]>;
  /** What runs has a moment to end. Idempotent. */
  close(): Promise<void>;
}
