import { counted } from "../text/counted.ts";

export type RunState = "ok" | "failed" | "interrupted";

/** The end of one run of a policy. */
export interface RunEnd {
  readonly state: RunState;
  /** Exit code of the command; -1 if there is none. */
  readonly code: number;
  readonly message: string;
}

/**
 * Exit codes of a shell that found no program (127), or found one that it may not run (126). A process that could not
 * be started has 127 too.
 */
const UNUSABLE_CODES = new Set([126, 127]);

/** The reason why the command cannot be run. Undefined when it ran, even if it failed. */
export function commandProblem({ state, code, message }: RunEnd): string | undefined {
  return state === "failed" && UNUSABLE_CODES.has(code) ? message : undefined;
}

/** The state of a policy that pauses after failures. */
export function pausedText(pause: {
  readonly pauseMs: number;
  readonly failures: number;
  readonly message: string;
}): string {
  const pauseS = Math.ceil(pause.pauseMs / 1_000);
  const failures = counted(pause.failures, "failure");
  return `paused for ${counted(pauseS, "second")} after ${failures} in a row: ${pause.message}`;
}
