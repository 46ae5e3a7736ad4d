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
  /** When the marks were so, or a run that was open then was due. Every entry of what was due before is with the controllers. */
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
 * Where a file is read, which commands were had, the epoch. Runs of policies are not among them: what became of those
 * is with the controllers.
 */
const KEPT = /^(?:policy\/.*\/(?:file-\d+|since)|command\/.*|epoch)$/s;
const OPEN_RUN = /^policy\/.*\/run$/s;

/**
 * Keeps marks beside the outbox, for the case that it is deleted: as they were at a moment whose entries all have
 * arrived. It is a little behind, so that after a loss some lines come twice, and none is left out.
 */
export class OutboxCopy {
  readonly #options: OutboxCopyOptions;
  #taken: { readonly saved: Saved; readonly sequence: number } | undefined;
  #last = "";

  constructor(options: OutboxCopyOptions) {
    this.#options = options;
  }

  /**
   * To be called once, before anything is written into the outbox. An outbox that is new and should not be goes on from
   * here, and says so.
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
    if (saved?.stream !== outbox.streamId) await this.#store(this.#now());
  }

  /** Until the signal fires, then once more. */
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

  /** Due times of runs that have not ended: what becomes of them comes later, and may be lost. */
  #openSince(): readonly number[] {
    const runs = this.#options.outbox.marks("policy/").filter(([key]) => OPEN_RUN.test(key));
    return runs
      .map(([, value]) => Number((JSON.parse(value) as { scheduledMs?: unknown }).scheduledMs))
      .filter(Number.isFinite);
  }

  /** Not written again while nothing has changed but the time. */
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

/** A command that had begun is not begun again: what came of it went with the outbox. */
function restored([key, value]: Saved["marks"][number], atMs: number): Mark {
  return { key, value: key.startsWith(COMMAND_MARKS) ? endedNote(value, atMs) : value };
}

function isSaved(value: unknown): value is Saved {
  return typeof value === "object" && value !== null && "format" in value && value.format === 1;
}
