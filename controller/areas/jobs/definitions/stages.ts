/** The scripts of a job, which the controller itself runs. */
export const STAGES = ["begin", "serverjs", "end"] as const;
export type Stage = (typeof STAGES)[number];

/** The scripts of one execution. */
export interface RunScripts {
  /** Texts of the serverJS scripts that run first (`begin`) and last (`end`); empty: no such script. */
  readonly begin: string;
  readonly end: string;
  /** Path or text of a script that runs instead of commands on hosts; empty: the job has hosts. */
  readonly serverjs: string;
  /** The user who saved the scripts. */
  readonly author: string;
}

const SERVERJS = /^\s*serverjs\s+/;

/** The script of a job without hosts; empty for a job with hosts. */
export function serverScriptOf(exec: readonly string[]): string {
  const [line = ""] = exec;
  return exec.length === 1 && SERVERJS.test(line) ? line.replace(SERVERJS, "").trim() : "";
}

/** The name used as host for a script, in its row and in the name of its output. No real host has such a name. */
export function placeOf(stage: Stage): string {
  return `-${stage}`;
}

export function stageOf(host: string): Stage | undefined {
  return STAGES.find((stage) => placeOf(stage) === host);
}
