import type { CommandResult } from "../../proto/gen/agent/v1/agent.ts";
import { AppError, isAppError } from "../../common/errors.ts";
import { JOURNAL_COMMANDS_MAX, JOURNAL_KEEP_MS } from "../../common/limits.ts";
import type { Clock } from "../../common/time.ts";
import { emitWhenRoom } from "../policies/host.ts";
import type { Emission, Outbox } from "../outbox/outbox.ts";

/** Begins the names of its marks. */
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
 * Remembers commands by id, before they start and after they end, as marks of the outbox: a command's end and its
 * result are one write, so a crash in between leaves exactly one result.
 */
export class Journal {
  readonly #outbox: Outbox;
  readonly #clock: Clock;
  /** Seen and perhaps not on disk yet; what is being written counts, or two calls at once would both pass. */
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
   * Throws `AppError("conflict")` for an epoch below the highest seen; a higher one is durable before this resolves.
   */
  async obey(epoch: number): Promise<void> {
    this.check(epoch);
    this.#highest = Math.max(this.#highest, epoch);
    if (epoch > Number(this.#outbox.mark(EPOCH) ?? 0))
      await this.#outbox.append([], { marks: [{ key: EPOCH, value: String(epoch) }], reserve: true });
  }

  /** Throws `AppError("conflict")` for an epoch below the highest seen, be that on disk already or not. */
  check(epoch: number): void {
    const highest = this.highestEpoch;
    if (epoch < highest) throw new AppError("conflict", `Epoch ${epoch} has passed: ${highest} was seen.`);
  }

  /** As `obey`, for a session that only sends: a full disk must not keep it from making room. */
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

  /** Settles as the start of the command does that is being written down; absent when none is. */
  starting(id: string): Promise<unknown> | undefined {
    return this.#starting.get(id);
  }

  /** Durable when it resolves. `AppError("limited")` when there is no room for one more. */
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

  /** Writes the one result; waits for room as long as it takes. */
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

  /** To be called once at the start: what had begun and not ended gets its result now. */
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

/** The note of a command as that of one that has ended, at the latest at `atMs`. */
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
