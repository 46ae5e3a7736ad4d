import { outputCutting } from "../../../common/agent/output-records.ts";
import type { CommandPolicySpec } from "../../../common/api/policies.ts";
import { AppError } from "../../../common/errors.ts";
import { policyMarks } from "../../policies/host.ts";
import type { PolicyPlugin } from "../../policies/plugin.ts";
import { storedEncoding } from "../../policies/stored-encoding.ts";
import { DaemonRunner } from "./daemon.ts";
import { IntervalRunner } from "./interval.ts";
import { interruptedRun } from "./run.ts";
import type { CommandWork } from "./work.ts";

const UNITS = new Set(["year", "month", "day", "hour", "minute", "second"]);

/** Runs a command again and again, or keeps one running, and sends what it prints. */
export const commandPolicy: PolicyPlugin = {
  kind: "command",
  create(given, host) {
    const { spec, policy } = given;
    if (!isCommandSpec(spec)) throw new AppError("invalid", `The policy ${policy.name} is no command policy.`);
    if (spec.ctype === 0 && given.depotFolder === undefined)
      throw new AppError("invalid", `The policy ${policy.name} names no depot.`);
    const encoding = storedEncoding(policy.name, spec, host);
    const work: CommandWork = { ...given, ...outputCutting(spec, encoding), spec, host };
    return spec.isdaemon ? new DaemonRunner(work) : new IntervalRunner(work);
  },
  async forget(policy, host) {
    const { emissions, marks } = interruptedRun(policy, host);
    if (emissions.length > 0)
      await host.emit(emissions, { marks: [...marks, { key: `${policyMarks(policy)}due` }], reserve: true });
  },
};

function isCommandSpec(value: unknown): value is CommandPolicySpec {
  if (typeof value !== "object" || value === null) return false;
  const spec: Partial<Record<string, unknown>> = { ...value };
  const texts = typeof spec.command === "string" && typeof spec.rule === "string";
  return (
    texts &&
    spec.kind === "command" &&
    typeof spec.interval === "number" &&
    spec.interval >= 1 &&
    UNITS.has(String(spec.unit))
  );
}
