import type { CallLine } from "../workers/index.ts";
import type { HostFunctionName } from "./types.ts";

/** Input of a script's thread. */
export interface ScriptInput {
  /** The tenant of the run. */
  readonly tenant: string;
  readonly name: string;
  readonly source: string;
  /** JSON of the object of globals. */
  readonly globals: string;
  readonly results: readonly string[];
  /** For a series: JSON of the globals of each run. `globals` are those of a single run. */
  readonly each?: readonly string[];
  /** As in `ScriptSeries`. */
  readonly frame?: string | undefined;
  /** As in `ScriptSeries`; absent: only the deadline ends a run. */
  readonly stepsMax?: number;
  /** Absent: `SCRIPT_OUTPUT_MAX_CHARACTERS`. */
  readonly outputMaxCharacters?: number;
  /** As in `ScriptCall`, unique among tenants. */
  readonly owner?: string | undefined;
  /** Seed of the script's random numbers. */
  readonly seed: number;
  readonly line: Pick<CallLine, "port" | "state">;
}

/** JSON of the results, or the reason why there are none. */
export type RunReport = { readonly results: string } | { readonly failure: ScriptFailure };
/** For a series: the report of each run. */
export type ScriptReport = RunReport | { readonly reports: readonly RunReport[] };

export interface ScriptFailure {
  /** `stopped`: by the deadline or the signal. `endless`: by `stepsMax`. */
  readonly kind: "syntax" | "thrown" | "memory" | "output" | "stopped" | "endless";
  readonly message: string;
  /** For `output`: the bound that was exceeded. */
  readonly limit?: string | undefined;
  /** Code of the error that a host call threw. */
  readonly code?: string | undefined;
  readonly details?: { readonly [name: string]: string | number | boolean } | undefined;
  readonly file?: string | undefined;
  readonly line?: number | undefined;
  readonly column?: number | undefined;
}

export type ScriptTask = (input: ScriptInput) => Promise<ScriptReport>;

/** Input of every thread. */
export interface ScriptThreadData {
  readonly functions: readonly HostFunctionName[];
}

/**
 * Answer of a host call: empty for no value, `=` and its JSON, or `!` and the JSON of this failure, which is thrown.
 */
export interface CallFailure {
  readonly message: string;
  readonly code?: string | undefined;
  readonly details?: { readonly [name: string]: string | number | boolean } | undefined;
}
