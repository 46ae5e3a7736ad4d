import type { CommandPolicySpec } from "../../../common/api/policies.ts";
import { compileCutter, type RecordCutter } from "../../../common/agent/records.ts";
import { AppError, isAppError } from "../../../common/errors.ts";
import type { Encoding } from "../../../common/text/encodings.ts";
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
    const cutters = { cutter: compileCutter(spec), encodedCutter: encodedCutter(spec, encoding) };
    const work: CommandWork = { ...given, spec, host, ...cutters, encoding };
    return spec.isdaemon ? new DaemonRunner(work) : new IntervalRunner(work);
  },
  async forget(policy, host) {
    const { emissions, marks } = interruptedRun(policy, host);
    if (emissions.length > 0)
      await host.emit(emissions, { marks: [...marks, { key: `${policyMarks(policy)}due` }], reserve: true });
  },
};

function encodedCutter(spec: CommandPolicySpec, encoding: Encoding | undefined): RecordCutter | undefined {
  if (encoding === undefined) return undefined;
  try {
    return compileCutter({ ...spec, encoding });
  } catch (error) {
    // The delimiter cannot be found in this encoding. The output is converted to UTF-8 before it is cut.
    if (!isAppError(error, "invalid")) throw error;
    return undefined;
  }
}

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
