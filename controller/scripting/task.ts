import type { CallLine } from "../workers/index.ts";
import type { HostFunctionName } from "./types.ts";

/** What the thread of a script is told. */
export interface ScriptInput {
  /** Whose run it is. */
  readonly tenant: string;
  readonly name: string;
  readonly source: string;
  /** JSON of the object of globals. */
  readonly globals: string;
  readonly results: readonly string[];
  /** JSON of the globals of each run, of a series; `globals` are those of one run. */
  readonly each?: readonly string[];
  /** As in `ScriptSeries`. */
  readonly frame?: string | undefined;
  /** As in `ScriptSeries`; absent: only the deadline ends a run. */
  readonly stepsMax?: number;
  /** `SCRIPT_OUTPUT_MAX_CHARACTERS` when absent. */
  readonly outputMaxCharacters?: number;
  /** As in `ScriptCall`, unique among tenants. */
  readonly owner?: string | undefined;
  /** Of the numbers it draws. */
  readonly seed: number;
  readonly line: Pick<CallLine, "port" | "state">;
}

/** JSON of the results, or why there are none. */
export type RunReport = { readonly results: string } | { readonly failure: ScriptFailure };
/** Of a series, what came of each run. */
export type ScriptReport = RunReport | { readonly reports: readonly RunReport[] };

export interface ScriptFailure {
  /** `stopped`: by the deadline or the signal; `endless`: by `stepsMax`. */
  readonly kind: "syntax" | "thrown" | "memory" | "output" | "stopped" | "endless";
  readonly message: string;
  /** The bound that an `output` passes. */
  readonly limit?: string | undefined;
  /** Of what a host call threw. */
  readonly code?: string | undefined;
  readonly details?: { readonly [name: string]: string | number | boolean } | undefined;
  readonly file?: string | undefined;
  readonly line?: number | undefined;
  readonly column?: number | undefined;
}

export type ScriptTask = (input: ScriptInput) => Promise<ScriptReport>;

/** For every thread. */
export interface ScriptThreadData {
  readonly functions: readonly HostFunctionName[];
}

/** A host call answers one text: nothing for no value, `=` and its JSON, or `!` and the JSON of this, which is thrown. */
export interface CallFailure {
  readonly message: string;
  readonly code?: string | undefined;
  readonly details?: { readonly [name: string]: string | number | boolean } | undefined;
}
