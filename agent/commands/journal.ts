import type { CommandResult } from "../../proto/gen/agent/v1/agent.ts";
import { AppError, isAppError } from "../../common/errors.ts";
import { JOURNAL_COMMANDS_MAX, JOURNAL_KEEP_MS } from "../../common/limits.ts";
import type { Clock } from "../../common/time.ts";
import { emitWhenRoom } from "../policies/host.ts";
import type { Emission, Outbox } from "../outbox/outbox.ts";

/** Prefix of the journal's marks. */
export const COMMAND_MARKS = "command/";
const PREFIX = COMMAND_MARKS;
const EPOCH = "epoch";

interface CommandRecord {
  readonly startedMs: number;
  /** Absent while it runs. */
  readonly endedMs?: number;
  readonly keepUntilMs: number;
  readonly traceparent?: string;
}

/**
 * Remembers commands by id, from before their start until after their end, as marks of the outbox. The end of a command
 * and its result are one write, so after a crash there is exactly one result.
 */
export class Journal {
  readonly #outbox: Outbox;
  readonly #clock: Clock;
  /**
   * The highest epoch seen, perhaps not on disk yet. It counts while it is being written; otherwise two concurrent
   * calls could both pass.
   */
  #highest = 0;
  readonly #starting = new Map<string, Promise<unknown>>();

  constructor(outbox: Outbox, clock: Clock) {
    this.#outbox = outbox;
    this.#clock = clock;
  }

  get highestEpoch(): number {
    return Math.max(this.#highest, Number(this.#outbox.mark(EPOCH) ?? 0));
  }

  /**
   * Throws `AppError("conflict")` for an epoch below the highest one seen. A higher epoch is durable when the promise
   * resolves; `AppError("limited")` when the outbox is full.
   */
  async obey(epoch: number): Promise<void> {
    this.check(epoch);
    this.#highest = Math.max(this.#highest, epoch);
    if (epoch > Number(this.#outbox.mark(EPOCH) ?? 0))
      await this.#outbox.append([], { marks: [{ key: EPOCH, value: String(epoch) }], reserve: true });
  }

  /** Throws `AppError("conflict")` for an epoch below the highest one seen, even if that is not on disk yet. */
  check(epoch: number): void {
    const highest = this.highestEpoch;
    if (epoch < highest) throw new AppError("conflict", `Epoch ${epoch} has passed: ${highest} was seen.`);
  }

  /** Like `obey`, but a full outbox is no error. The session is needed to send entries, which makes room again. */
  async see(epoch: number): Promise<void> {
    try {
      await this.obey(epoch);
    } catch (error) {
      if (!isAppError(error, "limited")) throw error;
    }
  }

  has(id: string): boolean {
    return this.#outbox.mark(PREFIX + id) !== undefined;
  }

  /** The pending write of `start` for a command; undefined when there is none. */
  starting(id: string): Promise<unknown> | undefined {
    return this.#starting.get(id);
  }

  /**
   * Stores a command before its start. It is durable when the promise resolves. `AppError("limited")` when the journal
   * has `JOURNAL_COMMANDS_MAX` commands or the outbox is full.
   */
  async start(id: string, remainingMs: number, traceparent: string): Promise<void> {
    const stale = this.#stale();
    if (this.#outbox.marks(PREFIX).length - stale.length >= JOURNAL_COMMANDS_MAX) {
      throw new AppError("limited", `The journal holds ${JOURNAL_COMMANDS_MAX} commands.`);
    }
    const startedMs = this.#clock.nowMs();
    const noted: CommandRecord = {
      startedMs,
      keepUntilMs: startedMs + Math.max(0, remainingMs) + JOURNAL_KEEP_MS,
      traceparent,
    };
    const marks = [{ key: PREFIX + id, value: JSON.stringify(noted) }, ...stale.map((key) => ({ key }))];
    const written = this.#outbox.append([], { marks, reserve: true }).finally(() => this.#starting.delete(id));
    this.#starting.set(id, written);
    await written;
  }

  /**
   * Writes the only result of a command, with the entries `before` it. Waits for room without a limit of time. A
   * command that has ended already gets no second result.
   */
  async finish(result: Omit<CommandResult, "startedMs" | "endedMs">, before: readonly Emission[] = []): Promise<void> {
    const key = PREFIX + result.commandId;
    const noted = parse(this.#outbox.mark(key));
    if (!noted || noted.endedMs !== undefined) return;
    const endedMs = this.#clock.nowMs();
    const body = { $case: "result" as const, value: { ...result, startedMs: noted.startedMs, endedMs } };
    const traceparent = noted.traceparent ?? "";
    const marks = [{ key, value: JSON.stringify({ ...noted, endedMs }) }];
    await emitWhenRoom(this.#outbox, [...before, { body, traceparent }], { marks, reserve: true });
  }

  /**
   * Call it once, when the agent starts. It writes a result for each command that had begun and not ended. Resolves
   * with their number.
   */
  async finishInterrupted(): Promise<number> {
    const open = this.#outbox.marks(PREFIX).filter(([, value]) => parse(value)?.endedMs === undefined);
    for (const [key] of open) {
      const commandId = key.slice(PREFIX.length);
      await this.finish({
        commandId,
        state: "interrupted",
        code: -1,
        message: "The agent ended while the command ran.",
      });
    }
    return open.length;
  }

  #stale(): string[] {
    const nowMs = this.#clock.nowMs();
    return this.#outbox
      .marks(PREFIX)
      .filter(([, value]) => {
        const noted = parse(value);
        return noted === undefined || (noted.endedMs !== undefined && noted.keepUntilMs < nowMs);
      })
      .map(([key]) => key);
  }
}

/** The journal entry of a command as an ended one. A command without an end gets the end `atMs`. */
export function endedNote(value: string, atMs: number): string {
  const noted = parse(value);
  return noted === undefined || noted.endedMs !== undefined ? value : JSON.stringify({ ...noted, endedMs: atMs });
}

function parse(value: string | undefined): CommandRecord | undefined {
  if (value === undefined) return undefined;
  const noted: unknown = JSON.parse(value);
  return isCommandRecord(noted) ? noted : undefined;
}

function isCommandRecord(value: unknown): value is CommandRecord {
  return typeof value === "object" && value !== null && "startedMs" in value && "keepUntilMs" in value;
}
