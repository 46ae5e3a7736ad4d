import type { CommandPolicySpec } from "../api/policies.ts";
import { POLICY_CPU_GRACE_S } from "../limits.ts";

/** Limits of each process of a command. Absent: none. */
export interface ProcessLimits {
  /** Address space. */
  readonly memoryBytes?: number | undefined;
  readonly cpuSeconds?: number | undefined;
  /** Is added to the niceness of the agent, or of the SSH login. */
  readonly nice?: number | undefined;
}

const KIB = 1_024;

/** Undefined without limits, so that the command is run by one shell only. */
export function processLimits(
  spec: Pick<CommandPolicySpec, "memorylimit" | "cpulimit" | "nice">,
): ProcessLimits | undefined {
  const { memorylimit, cpulimit, nice } = spec;
  if (memorylimit === undefined && cpulimit === undefined && nice === undefined) return undefined;
  return { memoryBytes: memorylimit, cpuSeconds: cpulimit, nice };
}

/**
 * Line of a POSIX shell that sets the limits and runs the line in `$1`. It ends with 126 on a host that cannot set one of
 * them. Undefined without limits.
 */
export function limitsLine({ memoryBytes, cpuSeconds, nice }: ProcessLimits): string | undefined {
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
  return [...tried, `exec ${priority}/bin/sh -c "$1"`].join("; ");
}
