import { limitsLine, type ProcessLimits } from "../../common/agent/process-limits.ts";

/** A user of this host under whom a command can run. */
export interface HostUser {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
  /** Path of the program that gives a process all groups of the user. Absent: a process has the first group only. */
  readonly setpriv?: string;
}

export interface ProgramOptions {
  readonly line: string;
  /** The user of the agent when absent. */
  readonly user?: HostUser | undefined;
  readonly limits?: ProcessLimits | undefined;
}

/** Program that `spawn` starts. `ids` are absent when the process keeps the user of the agent, or changes it by itself. */
export interface Program {
  readonly file: string;
  readonly args: readonly string[];
  readonly ids?: { readonly uid: number; readonly gid: number };
  readonly environment: Readonly<Record<string, string>>;
}

const SHELL = "/bin/sh";

/** The shell of a POSIX host with the line, under its limits and its user. All of them replace each other by `exec`. */
export function programOf({ line, user, limits = {} }: ProgramOptions): Program {
  const limited = limitsLine(limits);
  const args = limited === undefined ? ["-c", line] : ["-c", limited, "sh", line];
  if (!user) return { file: SHELL, args, environment: {} };
  const environment = { HOME: user.home, USER: user.name, LOGNAME: user.name };
  if (user.setpriv === undefined) return { file: SHELL, args, ids: { uid: user.uid, gid: user.gid }, environment };
  const identity = [`--reuid=${user.name}`, `--regid=${user.gid}`, "--init-groups", "--"];
  return { file: user.setpriv, args: [...identity, SHELL, ...args], environment };
}
