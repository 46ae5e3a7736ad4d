import type { Policy, PolicyRun } from "../../../proto/gen/agent/v1/agent.ts";
import type { RunEnd } from "../../../common/agent/run-end.ts";
import type { CommandPolicySpec } from "../../../common/api/policies.ts";
import { RUN_BUFFER_MAX_BYTES } from "../../../common/limits.ts";
import { policyMarks, type Host } from "../../policies/host.ts";
import type { Emission } from "../../outbox/outbox.ts";
import type { Mark } from "../../outbox/segment.ts";
import type { RawRecord } from "../../../common/agent/raw-records.ts";
import { sizeOf } from "../../../common/agent/packed-records.ts";
import { packRecords } from "../../outbox/records.ts";

/** A run that has begun and not ended, as it is stored in its mark. */
interface OpenRun {
  readonly revision: number;
  readonly scheduledMs: number;
  readonly startedMs: number;
  /** Records that are in the outbox already. */
  readonly records: number;
}

/** Entries and marks that belong in the same write as the beginning or the end of a run. */
export interface ExtraWrites {
  readonly emissions?: readonly Emission[];
  readonly marks?: readonly Mark[];
}

export interface RunOptions {
  readonly host: Host;
  readonly policy: Policy;
  readonly spec: Pick<CommandPolicySpec, "rule">;
  readonly scheduledMs: number;
  /** Stops the wait for room at the beginning of the run, not at its end. */
  readonly signal: AbortSignal;
}

function runMark(policy: string): string {
  return `${policyMarks(policy)}run`;
}

/**
 * One run of a policy. A mark stores it before its command starts. Its records and its end are one write, so a crash
 * neither repeats nor loses records. Records that are too many for one write are written before, in parts, and the mark
 * counts them.
 */
export class Run {
  readonly #options: RunOptions;
  readonly #startedMs: number;
  #buffered: RawRecord[] = [];
  #bufferedBytes = 0;
  #written = 0;

  private constructor(options: RunOptions) {
    this.#options = options;
    this.#startedMs = options.host.clock.nowMs();
  }

  static async begin(options: RunOptions, extra: ExtraWrites = {}): Promise<Run> {
    const run = new Run(options);
    const marks = [run.#mark(), ...(extra.marks ?? [])];
    await options.host.emit(extra.emissions ?? [], { marks, reserve: true, signal: options.signal });
    return run;
  }

  /**
   * Buffers records until the end of the run. When the buffer is full, it writes them, and waits for room in the
   * outbox.
   */
  async add(records: readonly RawRecord[], signal: AbortSignal): Promise<void> {
    this.#buffered.push(...records);
    this.#bufferedBytes += records.reduce((sum, record) => sum + sizeOf(record), 0);
    if (this.#bufferedBytes >= RUN_BUFFER_MAX_BYTES) await this.flush(signal);
  }

  async flush(signal: AbortSignal): Promise<void> {
    if (this.#buffered.length === 0) return;
    const records = this.#takeBuffered();
    try {
      await this.#options.host.emit(this.#pack(records), { marks: [this.#mark()], signal });
    } catch (error) {
      // Nothing was written, so the end of the run writes these records.
      this.#putBack(records);
      throw error;
    }
  }

  async end(end: RunEnd, extra: ExtraWrites = {}): Promise<void> {
    const { host, policy, scheduledMs } = this.#options;
    const emissions = this.#pack(this.#takeBuffered());
    const value: PolicyRun = {
      policy: policy.name,
      policyRevision: policy.revision,
      scheduledMs,
      ...end,
      startedMs: this.#startedMs,
      endedMs: host.clock.nowMs(),
      records: this.#written,
    };
    emissions.push({ body: { $case: "run", value } }, ...(extra.emissions ?? []));
    const marks = [{ key: runMark(policy.name) }, ...(extra.marks ?? [])];
    await host.emit(emissions, { marks, reserve: emissions.length === 1 });
  }

  #takeBuffered(): RawRecord[] {
    const records = this.#buffered;
    this.#buffered = [];
    this.#bufferedBytes = 0;
    this.#written += records.length;
    return records;
  }

  #putBack(records: readonly RawRecord[]): void {
    this.#buffered.unshift(...records);
    this.#bufferedBytes += records.reduce((sum, record) => sum + sizeOf(record), 0);
    this.#written -= records.length;
  }

  #pack(records: readonly RawRecord[]): Emission[] {
    const { policy, spec, scheduledMs } = this.#options;
    const head = {
      policy: policy.name,
      policyRevision: policy.revision,
      rule: spec.rule,
      source: "command",
      generation: String(scheduledMs),
      groups: {},
    };
    return packRecords(head, records);
  }

  #mark(): Mark {
    const { policy, scheduledMs } = this.#options;
    const open: OpenRun = {
      revision: policy.revision,
      scheduledMs,
      startedMs: this.#startedMs,
      records: this.#written,
    };
    return { key: runMark(policy.name), value: JSON.stringify(open) };
  }
}

/** The entry and mark that end a run which was open when the agent ended. Empty when there is none. */
export function interruptedRun(policy: string, host: Host): Required<ExtraWrites> {
  const text = host.mark(runMark(policy));
  if (text === undefined) return { emissions: [], marks: [] };
  const open: OpenRun = JSON.parse(text);
  const value: PolicyRun = {
    policy,
    policyRevision: open.revision,
    scheduledMs: open.scheduledMs,
    state: "interrupted",
    code: -1,
    message: "The agent ended while the command ran.",
    startedMs: open.startedMs,
    endedMs: host.clock.nowMs(),
    records: open.records,
  };
  return { emissions: [{ body: { $case: "run", value } }], marks: [{ key: runMark(policy) }] };
}
