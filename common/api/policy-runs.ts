import { Type } from "typebox";
import { USER_NAME } from "../agent/user-name.ts";
import {
  POLICY_BACKOFF_MAX_S,
  POLICY_BYTES_MAX,
  POLICY_CPU_MAX_S,
  POLICY_ENVIRONMENT_MAX_ENTRIES,
  POLICY_ENVIRONMENT_VALUE_MAX_CHARACTERS,
  POLICY_MEMORY_MIN_BYTES,
  POLICY_NICE_MAX,
  POLICY_RUN_MAX_S,
} from "../limits.ts";

/** Name of a user of a host; empty: that of the agent. */
export const HOST_USER = `^$|${USER_NAME.source}`;

const VARIABLE_NAME = "^(?!ODP_)[A-Za-z_][A-Za-z0-9_]{0,99}$";

/**
 * Members of a command policy that say how its command is run. An agent that does not know one of them must not run the
 * policy (`common/agent/policy-text.ts`).
 */
export const RUN_MEMBERS = {
  timeout: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: POLICY_RUN_MAX_S,
      description: `seconds after which a run is ended with all its processes, and fails; ${POLICY_RUN_MAX_S} if absent. Without effect with isdaemon`,
    }),
  ),
  overlap: Type.Optional(
    Type.Union([Type.Literal("skip"), Type.Literal("queue"), Type.Literal("replace"), Type.Literal("")], {
      description:
        "when a run is due while the former one goes on. skip, empty or absent: it is skipped and counted. queue: the last due one begins when the former one has ended. replace: the former one is ended, and fails. Without effect with isdaemon",
    }),
  ),
  outputlimit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: POLICY_BYTES_MAX,
      description:
        "bytes of the standard output of one run; the rest is dropped and counted in a gap. Without effect with isdaemon",
    }),
  ),
  backoff: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: POLICY_BACKOFF_MAX_S,
      description:
        "longest pause in seconds after failures, which doubles from the interval with each; runs that are due meanwhile are skipped and counted. Absent: no pause, but of a daemon at most a minute",
    }),
  ),
  user: Type.Optional(
    Type.String({
      pattern: HOST_USER,
      description:
        "user of the host who runs the command; empty or absent: the user of the agent. Only root runs it as another",
    }),
  ),
  environment: Type.Optional(
    Type.Record(
      Type.String(),
      Type.String({ maxLength: POLICY_ENVIRONMENT_VALUE_MAX_CHARACTERS, documented: { pattern: "^[^\\u0000]*$" } }),
      {
        description: "environment variables of the command, by name. Names with ODP_ are set by the agent",
        documented: { propertyNames: { pattern: VARIABLE_NAME }, maxProperties: POLICY_ENVIRONMENT_MAX_ENTRIES },
      },
    ),
  ),
  memorylimit: Type.Optional(
    Type.Integer({
      minimum: POLICY_MEMORY_MIN_BYTES,
      maximum: POLICY_BYTES_MAX,
      description: "bytes of address space that each process of the command may have",
    }),
  ),
  cpulimit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: POLICY_CPU_MAX_S,
      description: "seconds of processor time after which a process of the command is ended",
    }),
  ),
  nice: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: POLICY_NICE_MAX,
      description: "added to the niceness of the agent: the higher, the later the command gets the processor",
    }),
  ),
};

export type RunMember = keyof typeof RUN_MEMBERS;
