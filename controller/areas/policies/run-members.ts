import { AppError } from "../../../common/errors.ts";
import { POLICY_ENVIRONMENT_MAX_ENTRIES } from "../../../common/limits.ts";

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]{0,99}$/;
/** Variables that the agent sets itself. */
const RESERVED = /^ODP_/;

/** Throws `AppError("invalid")` for variables that no host can set, or that the agent sets itself. */
export function checkEnvironment(environment: Readonly<Record<string, string>> = {}): void {
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
