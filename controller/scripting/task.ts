import type { CallLine } from "../workers/index.ts";
import type { HostFunctionName } from "./types.ts";

/** What the thread of a script is told. */
export interface ScriptInput {
  readonly name: string;
  readonly source: string;
  /** JSON of the object of globals. */
  readonly globals: string;
  readonly results: readonly string[];
  /** As in `ScriptCall`, unique among tenants. */
  readonly owner?: string | undefined;
  /** Of the numbers it draws. */
  readonly seed: number;
  readonly line: Pick<CallLine, "port" | "state">;
}

/** JSON of the results, or why there are none. */
export type ScriptReport = { readonly results: string } | { readonly failure: ScriptFailure };

export interface ScriptFailure {
  /** `stopped`: by the deadline or the signal. */
  readonly kind: "syntax" | "thrown" | "memory" | "output" | "stopped";
  readonly message: string;
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
