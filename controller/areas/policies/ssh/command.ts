import { limitsLine, processLimits } from "../../../../common/agent/process-limits.ts";
import { outputCutting, outputRecords } from "../../../../common/agent/output-records.ts";
import { policyEncoding } from "../../../../common/agent/policy-encoding.ts";
import type { RawRecord } from "../../../../common/agent/raw-records.ts";
import { ErrorTail, OutputLimit, type RunDeadline } from "../../../../common/agent/run-bounds.ts";
import { commandProblem, type RunEnd } from "../../../../common/agent/run-end.ts";
import type { CommandPolicySpec } from "../../../../common/api/policies.ts";
import { withinTime } from "../../../../common/concurrency.ts";
import { ulidOf } from "../../../../common/ids.ts";
import { DISPATCH_GRACE_MS, POLICY_SSH_OUTPUT_MAX_BYTES, POLICY_SSH_RECORDS_MAX } from "../../../../common/limits.ts";
import { counted } from "../../../../common/text/counted.ts";
import { TextStream } from "../../../../common/text/text-stream.ts";
import type { Runtime } from "../../../runtime.ts";
import {
  quoted,
  type CommandOutcome,
  type HostCommand,
  type HostsOverSsh,
  type OutputPiece,
} from "../../hosts/index.ts";

export interface CommandParts {
  readonly runtime: Pick<Runtime, "clock" | "random">;
  readonly hosts: Pick<HostsOverSsh, "run" | "depotVersion">;
}

export interface CommandRun {
  readonly tenant: string;
  readonly host: string;
  readonly spec: CommandPolicySpec;
  readonly deadline: RunDeadline;
  readonly signal: AbortSignal;
}

export interface CommandResult {
  readonly end: RunEnd;
  readonly records: readonly RawRecord[];
  /** Bytes of the standard output beyond the limit. */
  readonly droppedBytes: number;
  /** The reason why the command cannot be run on the host. Absent: it ran, even if it failed. */
  readonly problem?: string | undefined;
  readonly isUnreachable: boolean;
}

/**
 * Runs the command of a policy once over SSH, and cuts its standard output into records, as an agent does. Output and
 * records are bounded: beyond `outputlimit`, `POLICY_SSH_OUTPUT_MAX_BYTES` or `POLICY_SSH_RECORDS_MAX`, output is dropped
 * and counted.
 */
export async function runCommand(parts: CommandParts, run: CommandRun): Promise<CommandResult> {
  const missing = await missingDepot(parts, run);
  if (missing !== undefined) return notRun(missing);
  const output = new RunOutput(run.spec);
  const { clock, random } = parts.runtime;
  const work = parts.hosts.run(run.tenant, run.host, commandOf(run.spec), {
    timeoutMs: Math.ceil(run.deadline.timeoutMs),
    commandId: `policy-${ulidOf(clock.nowMs(), random.bytes(10))}`,
    signal: run.signal,
    onOutput: (piece) => output.take(piece),
  });
  const outcome = await withinTime(clock, work, run.deadline.timeoutMs + DISPATCH_GRACE_MS);
  if (outcome?.state === "unreachable")
    return { ...notRun(`The host cannot be reached: ${outcome.message}`), isUnreachable: true };
  const { records, said, droppedBytes } = output.ended(run.signal.aborted);
  const end = endOf(outcome, said, run);
  return { end, records, droppedBytes, isUnreachable: false, problem: problemOf(outcome, end) };
}

function notRun(message: string): CommandResult {
  const end = { state: "failed", code: -1, message } as const;
  return { end, records: [], droppedBytes: 0, problem: message, isUnreachable: false };
}

/** The reason why the depot of the policy is not on the host. Undefined: it is, or the policy has none. */
async function missingDepot({ hosts }: CommandParts, { tenant, host, spec }: CommandRun): Promise<string | undefined> {
  const { ctype, depotname = "", depotversion = "" } = spec;
  if (ctype !== 0) return undefined;
  const placed = await hosts.depotVersion(tenant, host, depotname);
  if (placed === depotversion) return undefined;
  const found = placed === undefined ? "" : `, but its version ${placed}`;
  return `The version ${depotversion} of the depot ${depotname} is not on the host${found}: deploy it there.`;
}

function commandOf(spec: CommandPolicySpec): HostCommand & { readonly kind: "exec" } {
  const limits = processLimits(spec);
  const limited = limits && limitsLine(limits);
  return {
    kind: "exec",
    line: limited === undefined ? spec.command : `set -- ${quoted(spec.command)}; ${limited}`,
    environment: { ...spec.environment, ODP_POLICY: spec.name },
    ...(spec.user ? { user: spec.user } : {}),
    ...(spec.ctype === 0 && spec.depotname ? { depot: spec.depotname } : {}),
  };
}

/** A command that failed without a code did not run to its end. After a lost connection its next run may. */
function problemOf(outcome: CommandOutcome | undefined, end: RunEnd): string | undefined {
  const isRefused = outcome?.state === "failed" && outcome.code === undefined && outcome.signal === undefined;
  return isRefused ? end.message : commandProblem(end);
}

function endOf(outcome: CommandOutcome | undefined, said: readonly string[], { deadline, signal }: CommandRun): RunEnd {
  const code = outcome?.code ?? -1;
  if (signal.aborted || outcome?.state === "cancelled")
    return { state: "interrupted", code, message: "The controller or the policy was stopped." };
  const isLate = outcome === undefined || outcome.state === "timeout";
  const what = isLate ? deadline.message : messageOf(outcome);
  return {
    state: outcome?.state === "ok" ? "ok" : "failed",
    code,
    message: [what, ...said].filter(Boolean).join(": "),
  };
}

/** In the words of an agent. */
function messageOf({ code, message }: CommandOutcome): string {
  if (code === undefined) return message;
  return code === 0 ? "" : `ended with code ${code}`;
}

/** The output of one run: the records of its standard output, and the end of its error output. */
class RunOutput {
  readonly #spec: CommandPolicySpec;
  readonly #cutting: ReturnType<typeof outputRecords>;
  readonly #encoding: ReturnType<typeof policyEncoding>;
  readonly #errorText: TextStream | undefined;
  readonly #limit: OutputLimit;
  readonly #errors = new ErrorTail();
  readonly #records: RawRecord[] = [];
  #lateBytes = 0;

  constructor(spec: CommandPolicySpec) {
    this.#spec = spec;
    this.#encoding = policyEncoding(spec);
    this.#errorText = this.#encoding && new TextStream(this.#encoding);
    this.#cutting = outputRecords(outputCutting(spec, this.#encoding));
    this.#limit = new OutputLimit(Math.min(spec.outputlimit ?? Infinity, POLICY_SSH_OUTPUT_MAX_BYTES));
  }

  take({ stderr, data }: OutputPiece): void {
    if (stderr) this.#errors.add(this.#errorText ? new TextEncoder().encode(this.#errorText.take(data)) : data);
    else if (this.#records.length >= POLICY_SSH_RECORDS_MAX) this.#lateBytes += data.length;
    else this.#records.push(...this.#cutting.push(this.#limit.kept(data)));
  }

  /** The records are without the last one if the output is not whole because the run was stopped. */
  ended(isStopped: boolean): {
    readonly records: readonly RawRecord[];
    readonly said: string[];
    readonly droppedBytes: number;
  } {
    if (!isStopped) this.#records.push(...this.#limit.ended(this.#cutting.end()));
    const droppedBytes = this.#limit.droppedBytes + this.#lateBytes;
    const said = [this.#dropped(droppedBytes), this.#errors.text(), this.#malformed()];
    return { records: this.#records, said, droppedBytes };
  }

  #dropped(droppedBytes: number): string {
    const { outputlimit = Infinity } = this.#spec;
    if (droppedBytes === 0) return "";
    if (this.#lateBytes === 0 && outputlimit <= POLICY_SSH_OUTPUT_MAX_BYTES) return this.#limit.message;
    const dropped = counted(droppedBytes, "byte of the output was", "bytes of the output were");
    return `${dropped} dropped, as a run over SSH has at most ${POLICY_SSH_OUTPUT_MAX_BYTES} bytes and ${POLICY_SSH_RECORDS_MAX} records`;
  }

  #malformed(): string {
    const { malformed } = this.#cutting;
    if (malformed === 0) return "";
    const characters = counted(malformed, "character of the output is", "characters of the output are");
    return `${characters} no ${this.#encoding?.name ?? ""}`;
  }
}
