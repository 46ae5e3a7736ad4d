import type { AppError } from "../../common/errors.ts";
import type { Value } from "../../common/value.ts";

export type ScriptLanguage = "javascript" | "lua";

/** The caller of a script. It decides which host objects the script has. */
export type ScriptKind = "serverjs" | "trigger" | "rule";

/** One run of one script. */
export interface ScriptCall {
  /** The tenant of the run: tenants get the threads in rotation. */
  readonly tenant: string;
  /**
   * Each kind of a tenant has its share of the threads. A run for which a user waits is always `serverjs`, even if its
   * text is that of a trigger or a rule.
   */
  readonly kind: ScriptKind;
  /** The user with whose rights it runs. Each user has a share of the threads of a kind. */
  readonly user: string;
  readonly language: ScriptLanguage;
  /** Name in errors and positions: the path of its file, or another name. */
  readonly name: string;
  readonly source: string;
  /** Global variables of the script; names are identifiers of the language. */
  readonly globals: Readonly<Record<string, Value>>;
  /** Names of the global variables to return. */
  readonly results: readonly string[];
  /** Timeout from the call to the answer, including waits for a thread and for host calls. */
  readonly timeoutMs: number;
  /**
   * Number of scripts that wait for this one, each in a host call: `scriptDepth` of the calling principal. Runs of
   * different depths share no thread, so a waiting script never blocks the script that it waits for.
   */
  readonly depth?: number;
  readonly signal?: AbortSignal;
  /** Runs of one owner and text may share prepared data of the language. Absent: nothing is shared. */
  readonly owner?: string;
}

export interface HostCall {
  /** `object.function`, or `require` for the text of another script, which returns `{name, source}`. */
  readonly name: string;
  readonly args: readonly Value[];
  /** `/path.js:line:column` of the call, for functions that ask for it. */
  readonly at?: string | undefined;
  /** Fires if the script is over before the call is. */
  readonly signal: AbortSignal;
}

/** Host functions of a script. They run on the thread that answers calls, with the principal's rights. */
export interface ScriptHost {
  /** The script waits for the answer synchronously. An error is thrown in the script. */
  call(call: HostCall): Promise<Value | undefined>;
}

export interface ScriptOutcome {
  /** A variable without a value is absent. */
  readonly results: Readonly<Record<string, Value>>;
}

/** One text to run for many records. It has no `globals`; `timeoutMs` applies to all runs together. */
export interface ScriptSeries extends Omit<ScriptCall, "globals"> {
  /**
   * A trusted text around each run. In JavaScript: an expression, a function of the global object that returns `{begin,
   * finish}`. In Lua: a text that returns `{begin, finish, functions, libraries}`, whose functions get the table of
   * globals. `begin` is called before a run, after its globals are set; `finish` after it, before its results are read.
   * State of one run must not affect the next: in Lua `begin` must reset it, because all runs share the frame.
   */
  readonly frame?: string;
  /** The global variables of each run. */
  readonly each: readonly Readonly<Record<string, Value>>[];
  /**
   * Maximum number of stop checks of one run; a run with more fails. A count instead of a time gives the same result
   * when the run is repeated.
   */
  readonly stepsMax: number;
  /** Maximum length of the results of one run as JSON. */
  readonly outputMaxCharacters: number;
}

/** Names of the functions that a host answers. */
export interface HostFunctionName {
  readonly object: string;
  readonly name: string;
  /** True if it receives the position of the call. */
  readonly positioned?: boolean;
}

/**
 * Runs scripts in isolation: each begins with the same globals, which no earlier run changes. Runs may be concurrent.
 */
export interface ScriptEngine {
  /**
   * Errors: `syntax` if the text does not parse; `invalid` with the error of the script, or of a host call in it (its
   * code is kept); both with details `file`, `line`, `column` as far as known. `too_large` with the name of the limit
   * on memory, output or calls; `deadline`, with `SCRIPT_NATIVE_MAX_MS` if the script could not be stopped; `cancelled`
   * by the signal; `limited` if the queue is full, and beyond `SCRIPT_DEPTH_MAX`; `unsupported` for a language that is
   * not offered; `unavailable` if the engine closes.
   */
  run(call: ScriptCall, host: ScriptHost): Promise<ScriptOutcome>;
  /**
   * Runs a text once for each set of globals, one after the other on one thread, as if each run had been called alone.
   * Returns the outcome or the error of each run, in the order of `each`. Errors of the whole call are those of `run`;
   * the deadline and the signal end all runs.
   */
  runEach(series: ScriptSeries, host: ScriptHost): Promise<readonly (ScriptOutcome | AppError)[]>;
  /** Lets running scripts end within a short time. Idempotent. */
  close(): Promise<void>;
}
