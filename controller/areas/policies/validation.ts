import { Value } from "typebox/value";
import { policyEncoding } from "../../../common/agent/policy-encoding.ts";
import { policyHeading } from "../../../common/agent/policy-heading.ts";
import { compileCutter } from "../../../common/agent/records.ts";
import { CommandPolicySpec, LogPolicySpec, TIME_ZONE, type PolicySpec } from "../../../common/api/policies.ts";
import { AppError, errorText, isAppError } from "../../../common/errors.ts";
import { fileName } from "../../../common/paths.ts";
import { checkEnvironment } from "./run-members.ts";
import { timeZoneOf } from "../../../common/times/index.ts";
import { compilePattern, type Pattern } from "../../../common/regex/pattern.ts";

/** Throws `AppError("invalid")` that names the wrong member and the reason. Does not check rule, depot and hosts. */
export function checkSpec(spec: PolicySpec): void {
  const schema = spec.kind === "command" ? CommandPolicySpec : LogPolicySpec;
  const [first] = Value.Errors(schema, spec);
  if (first) throw new AppError("invalid", `The policy's ${first.instancePath.slice(1) || "form"} ${first.message}.`);
  // The agent stores the policy's configuration as <name>.conf in the folder of its working files.
  fileName(spec.name);
  checked("delimiter", spec.delimiter);
  checkTimeZone(spec);
  if (spec.kind === "command") checkCommand(spec);
  else checkLog(spec);
}

function checkTimeZone({ attrs }: PolicySpec): void {
  const zone = attrs?.[TIME_ZONE] ?? "";
  if (zone.trim() !== "") named(`attrs.${TIME_ZONE}`, () => timeZoneOf(zone));
}

function checkCommand(spec: CommandPolicySpec): void {
  policyEncoding(spec);
  checkEnvironment(spec.environment);
  if (spec.ctype !== 0) return;
  if (!spec.depotname)
    throw new AppError("invalid", "A command policy with ctype 0 runs in a depot's folder: depotname is missing.");
  if (!spec.depotversion)
    throw new AppError("invalid", "A command policy with ctype 0 runs in a depot's folder: depotversion is missing.");
}

/** An absolute path: POSIX, with a drive letter, or of a network share. */
const ABSOLUTE_FOLDER = /^(\/|[A-Za-z]:[\\/]|\\\\)/;

function checkLog(spec: LogPolicySpec): void {
  if (!ABSOLUTE_FOLDER.test(spec.dir))
    throw new AppError("invalid", `The policy's dir must be an absolute path, not ${JSON.stringify(spec.dir)}.`);
  const match = checked("match", spec.match);
  checked("matchregexp", spec.matchregexp);
  compileCutter({ ...spec, encoding: policyEncoding(spec) });
  policyHeading(spec);
  const used = [
    ...(spec.priority ?? []),
    ...Object.keys(spec.translation ?? {}),
    ...(spec.differentiator ? [spec.differentiator] : []),
  ];
  const unknown = used.find((group) => !match?.groupNames.includes(group));
  if (unknown === undefined) return;
  throw new AppError(
    "invalid",
    `The policy orders files by the group ${JSON.stringify(unknown)}, which match does not capture.`,
  );
}

function checked(member: string, source: string | undefined): Pattern | undefined {
  return source === undefined || source === "" ? undefined : named(member, () => compilePattern(source));
}

/** Adds the name of the member to the error of its value. */
function named<T>(member: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!isAppError(error)) throw error;
    throw new AppError(error.code, `The policy's ${member} is refused: ${errorText(error)}`, { cause: error });
  }
}
