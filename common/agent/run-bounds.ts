import type { CommandPolicySpec } from "../api/policies.ts";
import { EXEC_ERROR_TAIL_BYTES, POLICY_RUN_MAX_MS } from "../limits.ts";
import { counted } from "../text/counted.ts";
import { dueAfter } from "./due.ts";

/** Time from the begin of a run to its forced end, and the message about it. */
export interface RunDeadline {
  readonly timeoutMs: number;
  readonly message: string;
}

/** A run ends at its timeout, and with `overlap` `replace` at the next due time if that is earlier. */
export function runDeadline({ timeout, overlap, ...schedule }: CommandPolicySpec, nowMs: number): RunDeadline {
  const timeoutMs = timeout === undefined ? POLICY_RUN_MAX_MS : timeout * 1_000;
  const nextMs = overlap === "replace" ? dueAfter(schedule, nowMs) - nowMs : Infinity;
  if (nextMs < timeoutMs) return { timeoutMs: nextMs, message: "ended because the next run is due" };
  return { timeoutMs, message: `ended at its deadline, after ${counted(timeoutMs / 1_000, "second")}` };
}

/** Drops the standard output of a run beyond a number of bytes, and counts it. */
export class OutputLimit {
  droppedBytes = 0;
  #room: number;
  readonly #bytes: number | undefined;

  /** `undefined`: all output is kept. */
  constructor(bytes: number | undefined) {
    this.#bytes = bytes;
    this.#room = bytes ?? Infinity;
  }

  kept(data: Uint8Array): Uint8Array {
    const kept = data.subarray(0, Math.min(data.length, this.#room));
    this.#room -= kept.length;
    this.droppedBytes += data.length - kept.length;
    return kept;
  }

  /** Marks the last record as cut, as its end may be among the dropped bytes. */
  ended<T extends { readonly cut: boolean }>(records: readonly T[]): readonly T[] {
    if (this.droppedBytes === 0) return records;
    return records.map((record, index) => (index === records.length - 1 ? { ...record, cut: true } : record));
  }

  get message(): string {
    if (this.droppedBytes === 0) return "";
    const dropped = counted(this.droppedBytes, "byte of the output was", "bytes of the output were");
    return `${dropped} dropped, as outputlimit is ${this.#bytes}`;
  }
}

/** The last `EXEC_ERROR_TAIL_BYTES` of the error output. */
export class ErrorTail {
  #bytes = new Uint8Array();

  add(data: Uint8Array): void {
    const all = new Uint8Array(this.#bytes.length + data.length);
    all.set(this.#bytes);
    all.set(data, this.#bytes.length);
    this.#bytes = all.slice(-EXEC_ERROR_TAIL_BYTES);
  }

  text(): string {
    return new TextDecoder().decode(this.#bytes).trim();
  }
}
