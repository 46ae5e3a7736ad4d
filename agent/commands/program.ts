import { POLICY_CPU_GRACE_S } from "../../common/limits.ts";

/** A user of this host under whom a command can run. */
export interface HostUser {
  readonly name: string;
  readonly uid: number;
  readonly gid: number;
  readonly home: string;
  /** Path of the program that gives a process all groups of the user. Absent: a process has the first group only. */
  readonly setpriv?: string;
}

/** Limits of each process of a command. Absent: none. */
export interface ProcessLimits {
  /** Address space. */
  readonly memoryBytes?: number | undefined;
  readonly cpuSeconds?: number | undefined;
  /** Is added to the niceness of the agent. */
  readonly nice?: number | undefined;
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
const KIB = 1_024;

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

/** Line that sets the limits and runs the line in `$1`. It ends with 126 on a host that cannot set one of them. */
function limitsLine({ memoryBytes, cpuSeconds, nice }: ProcessLimits): string | undefined {
  const sets = [
    ...(memoryBytes === undefined ? [] : [`ulimit -v ${Math.floor(memoryBytes / KIB)}`]),
    // SIGXCPU comes at the soft limit, so that the message names the reason. SIGKILL comes at the hard one.
    ...(cpuSeconds === undefined
      ? []
      : [`ulimit -S -t ${cpuSeconds}`, `ulimit -H -t ${cpuSeconds + POLICY_CPU_GRACE_S}`]),
  ];
  if (sets.length === 0 && nice === undefined) return undefined;
  const priority = nice === undefined ? "" : `nice -n ${nice} `;
  // A shell ends with a code of its own if `ulimit` fails, so the limits are tried in another one before.
  const tried = sets.length === 0 ? [] : [`(${sets.join(" && ")}) || exit 126`, ...sets];
  return [...tried, `exec ${priority}${SHELL} -c "$1"`].join("; ");
}
