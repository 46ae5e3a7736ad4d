import type { CommandPolicySpec } from "../../../common/api/policies.ts";
import { AppError } from "../../../common/errors.ts";
import { POLICY_ENVIRONMENT_MAX_ENTRIES } from "../../../common/limits.ts";

/** Members that are about runs with a due time and an end, which a daemon lacks. */
const OF_RUNS = ["timeout", "overlap", "outputlimit"] as const;

/** Units of a fixed length. Months and years are longer than the longest pause. */
const UNIT_S: Readonly<Record<CommandPolicySpec["unit"], number>> = {
  second: 1,
  minute: 60,
  hour: 3_600,
  day: 86_400,
  month: 28 * 86_400,
  year: 365 * 86_400,
};

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]{0,99}$/;
/** Variables that the agent sets itself. */
const RESERVED = /^ODP_/;

/** Throws `AppError("invalid")` for a member about runs that could have no effect, or that no host can carry out. */
export function checkRuns(spec: CommandPolicySpec): void {
  const idle = OF_RUNS.find((member) => (spec[member] ?? "") !== "");
  if (spec.isdaemon && idle !== undefined)
    throw new AppError("invalid", `The policy's ${idle} is refused: a daemon has no runs that are due and end.`);
  checkBackoff(spec);
  checkEnvironment(spec.environment ?? {});
}

function checkBackoff({ isdaemon, backoff, interval, unit }: CommandPolicySpec): void {
  const intervalS = interval * UNIT_S[unit];
  if (isdaemon || backoff === undefined || backoff > intervalS) return;
  throw new AppError(
    "invalid",
    `The policy's backoff is refused: a pause of ${backoff} seconds skips no run, as there are ${intervalS} between two.`,
  );
}

function checkEnvironment(environment: Readonly<Record<string, string>>): void {
  const entries = Object.entries(environment);
  if (entries.length > POLICY_ENVIRONMENT_MAX_ENTRIES)
    throw new AppError("too_large", `The policy's environment has more than ${POLICY_ENVIRONMENT_MAX_ENTRIES} names.`, {
      details: { limit: "POLICY_ENVIRONMENT_MAX_ENTRIES" },
    });
  for (const [name, value] of entries) {
    if (!VARIABLE.test(name))
      throw new AppError("invalid", `The policy's environment has ${JSON.stringify(name)}, which names no variable.`);
    if (RESERVED.test(name))
      throw new AppError("invalid", `The policy's environment has ${name}: names with ODP_ are set by the agent.`);
    if (value.includes("\0"))
      throw new AppError("invalid", `The policy's environment has ${name} with a NUL character in it.`);
  }
}
