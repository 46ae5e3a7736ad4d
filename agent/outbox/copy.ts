import type { Files } from "../../common/files.ts";
import { errorText } from "../../common/errors.ts";
import { OUTBOX_COPY_MS } from "../../common/limits.ts";
import { wait, type Clock } from "../../common/time.ts";
import { readWhole, writeAtomically } from "../disk/files.ts";
import { COMMAND_MARKS, endedNote } from "../commands/journal.ts";
import type { Log } from "../log.ts";
import type { Outbox } from "./outbox.ts";
import { inParts, type Mark } from "./segment.ts";

interface Saved {
  readonly format: 1;
  readonly stream: string;
  /**
   * The time when the marks were read, or the earliest due time of a run that was open then. The controllers have all
   * entries of work that was due before this time.
   */
  readonly atMs: number;
  readonly marks: readonly (readonly [key: string, value: string])[];
}

export interface OutboxCopyOptions {
  readonly path: string;
  readonly files: Files;
  readonly outbox: Outbox;
  readonly clock: Clock;
  readonly log: Log;
}

/**
 * Marks that are copied: positions in followed files, the times since which log policies run, commands, and the epoch.
 * Marks of policy runs are not copied, because the controllers have the results of those runs.
 */
const KEPT = /^(?:policy\/.*\/(?:file-\d+|since)|command\/.*|epoch)$/s;
const OPEN_RUN = /^policy\/.*\/run$/s;

/**
 * Stores a copy of some marks outside the outbox, in case the outbox is deleted. The copy is written only after the
 * controllers have every entry that was written before the marks were read. It is a little behind, so after a loss some
 * lines are sent twice, but none is skipped. Only where no copy exists, `restore` writes the first one at once.
 */
export class OutboxCopy {
  readonly #options: OutboxCopyOptions;
  #taken: { readonly saved: Saved; readonly sequence: number } | undefined;
  #last = "";

  constructor(options: OutboxCopyOptions) {
    this.#options = options;
  }

  /**
   * Call it once, before the first write into the outbox. If the outbox is new although a copy exists, the outbox was
   * lost: this writes the copied marks into it, and a gap with the reason `outbox_lost`.
   */
  async restore(): Promise<void> {
    const { outbox, clock, log } = this.#options;
    const saved = await this.#load();
    if (saved && saved.stream !== outbox.streamId && outbox.nextSequence === 1) {
      log("error", "the outbox was lost", { stream: saved.stream, since: new Date(saved.atMs).toISOString() });
      const value = {
        policy: "",
        source: "outbox",
        reason: "outbox_lost",
        count: 0,
        unit: "entries",
        fromMs: saved.atMs,
        toMs: clock.nowMs(),
      };
      // The gap comes last: without it, a restart restores all of them again.
      for (const marks of inParts(saved.marks))
        await outbox.append([], { marks: marks.map((mark) => restored(mark, saved.atMs)) });
      await outbox.append([{ body: { $case: "gap", value } }]);
    }
    // While entries are on their way the former copy stays: after another loss, its positions skip none of them.
    const hasArrived = outbox.firstSequence === outbox.nextSequence;
    if (saved === undefined || (saved.stream !== outbox.streamId && hasArrived)) await this.#store(this.#now());
  }

  /** Updates the copy every `OUTBOX_COPY_MS` until the signal fires, and once more after that. */
  async keep(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await wait(this.#options.clock, OUTBOX_COPY_MS, signal);
      await this.#keepOnce();
    }
    this.#taken = undefined;
    await this.#keepOnce();
  }

  async #keepOnce(): Promise<void> {
    const { outbox } = this.#options;
    this.#taken ??= { saved: this.#now(), sequence: outbox.nextSequence - 1 };
    if (outbox.firstSequence <= this.#taken.sequence) return;
    await this.#store(this.#taken.saved);
    this.#taken = undefined;
  }

  #now(): Saved {
    const { outbox, clock } = this.#options;
    return {
      format: 1,
      stream: outbox.streamId,
      atMs: Math.min(clock.nowMs(), ...this.#openSince()),
      marks: outbox.marks("").filter(([key]) => KEPT.test(key)),
    };
  }

  /** Due times of runs that have not ended. Their results are written later, so they may be lost with the outbox. */
  #openSince(): readonly number[] {
    const runs = this.#options.outbox.marks("policy/").filter(([key]) => OPEN_RUN.test(key));
    return runs
      .map(([, value]) => Number((JSON.parse(value) as { scheduledMs?: unknown }).scheduledMs))
      .filter(Number.isFinite);
  }

  /** Writes the copy if anything but its time has changed. A failure is only logged. */
  async #store(saved: Saved): Promise<void> {
    const { files, path, log } = this.#options;
    const content = JSON.stringify({ ...saved, atMs: 0 });
    if (content === this.#last) return;
    try {
      await writeAtomically(files, path, Buffer.from(JSON.stringify(saved)));
      this.#last = content;
    } catch (error) {
      log("warn", "copy of the outbox's marks not written", { error: errorText(error) });
    }
  }

  async #load(): Promise<Saved | undefined> {
    const bytes = await readWhole(this.#options.files, this.#options.path);
    if (bytes === undefined) return undefined;
    const saved: unknown = JSON.parse(bytes.toString());
    return isSaved(saved) ? saved : undefined;
  }
}

/**
 * A mark as it is restored. A command that was running becomes an ended one, so that it is not started again. Its
 * result was lost with the outbox.
 */
function restored([key, value]: Saved["marks"][number], atMs: number): Mark {
  return { key, value: key.startsWith(COMMAND_MARKS) ? endedNote(value, atMs) : value };
}

function isSaved(value: unknown): value is Saved {
  return typeof value === "object" && value !== null && "format" in value && value.format === 1;
}
