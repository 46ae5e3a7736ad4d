import { withinTime } from "../../../common/concurrency.ts";
import { AppError, isAppError } from "../../../common/errors.ts";
import {
  IMPORT_CHUNK_ATTEMPTS,
  IMPORT_CHUNK_RETRY_MS,
  IMPORT_PROGRESS_MS,
  SHUTDOWN_DEADLINE_MS,
} from "../../../common/limits.ts";
import { wait } from "../../../common/time.ts";
import type { Runtime } from "../../runtime.ts";
import { isTransient, type Controllers } from "../../store/journal.ts";
import type { Objects } from "../objects/index.ts";
import type { TransferRecords } from "./records.ts";
import { scriptParts } from "./source.ts";
import type { ImportEnd, OpenImport, TransferStore, VersionedImport } from "./store.ts";
import { ScriptWriter, type Progress } from "./write.ts";

export interface RunDependencies {
  readonly store: TransferStore;
  readonly records: TransferRecords;
  readonly objects: Objects;
  readonly runtime: Runtime;
  readonly controllers: Controllers;
}

/** Another controller continues the import, or nothing is left to do. */
class Lost extends Error {}

/**
 * Writes imports that are checked and staged. One that is interrupted stays open: whichever controller sees it without
 * an owner goes on where the last note says, and its end is decided once.
 */
export class ImportRuns {
  readonly #dependencies: RunDependencies;
  readonly #closing = new AbortController();
  readonly #held = new Set<string>();
  readonly #running = new Set<Promise<OpenImport>>();

  constructor(dependencies: RunDependencies) {
    this.#dependencies = dependencies;
  }

  /** Until the answer is called, this controller does not treat the import as abandoned. */
  hold(id: string): () => void {
    this.#held.add(id);
    return () => this.#held.delete(id);
  }

  /** Resolves with the import when it has ended or rests, or when another controller has it. */
  start(mine: VersionedImport): Promise<OpenImport> {
    const { id } = mine.open;
    const release = this.hold(id);
    const running = this.#run(mine).finally(() => {
      release();
      this.#running.delete(running);
    });
    this.#running.add(running);
    running.catch((error: unknown) =>
      this.#dependencies.runtime.log.error({ err: error, transfer: id }, "an import broke off"),
    );
    return running;
  }

  /** Continues abandoned imports. Call it from time to time and when a controller went; safe on several controllers. */
  async maintain(tenant: string): Promise<void> {
    const { store, controllers } = this.#dependencies;
    for (const found of await store.all(tenant)) {
      const { id, owner } = found.open;
      if (this.#closing.signal.aborted || this.#held.has(id) || (owner !== controllers.own && controllers.has(owner)))
        continue;
      const mine = await store.change(found, { owner: controllers.own });
      if (mine) await this.#attend(mine);
    }
  }

  /** Resolves when nothing that is under way now is so any more. */
  async settled(): Promise<void> {
    await Promise.allSettled(this.#running);
  }

  /** What is under way rests after its chunk. */
  async close(): Promise<void> {
    this.#closing.abort(new AppError("cancelled", "The controller is shutting down."));
    await withinTime(this.#dependencies.runtime.clock, this.settled(), SHUTDOWN_DEADLINE_MS);
  }

  /** A client of an import that was never staged got nothing but an error. */
  async #attend(held: VersionedImport): Promise<void> {
    if (!held.open.staged) await this.#dependencies.store.remove(held.open);
    else void this.start(held).catch(() => undefined);
  }

  async #run(held: VersionedImport): Promise<OpenImport> {
    const journal = new Journal(held, this.#dependencies);
    try {
      if (!journal.open.end) await journal.decide(await this.#write(journal));
      await journal.settle();
    } catch (error) {
      if (!(error instanceof Lost) && !isTransient(error)) throw error;
    }
    return journal.open;
  }

  /** Tries again from the last note while the stores are away for a moment; how it ended, unless it has to rest. */
  async #write(journal: Journal): Promise<Omit<ImportEnd, "endedMs">> {
    const { clock } = this.#dependencies.runtime;
    for (let attempt = 1; ; attempt += 1) {
      const before = journal.open.notedMs;
      try {
        await this.#writeOnce(journal);
        return { state: "done", message: "" };
      } catch (error) {
        if (isAppError(error) && !isTransient(error))
          return { state: "failed", code: error.code, message: error.message };
        if (journal.open.notedMs > before) attempt = 1;
        if (
          !isAppError(error) ||
          error.code === "internal" ||
          this.#closing.signal.aborted ||
          attempt >= IMPORT_CHUNK_ATTEMPTS
        )
          throw error;
        await wait(clock, IMPORT_CHUNK_RETRY_MS * attempt, this.#closing.signal);
      }
    }
  }

  async #writeOnce(journal: Journal): Promise<void> {
    const { store, objects, runtime } = this.#dependencies;
    const { open } = journal;
    const writer = new ScriptWriter({ objects, clock: runtime.clock }, open, open);
    await writer.write(
      () => scriptParts(store.script(open)),
      (progress) => journal.note(progress),
      this.#closing.signal,
    );
  }
}

/** What is noted of one import that this controller holds. */
class Journal {
  readonly #dependencies: RunDependencies;
  #held: VersionedImport;
  #toldMs = -Infinity;

  constructor(held: VersionedImport, dependencies: RunDependencies) {
    this.#held = held;
    this.#dependencies = dependencies;
  }

  get open(): OpenImport {
    return this.#held.open;
  }

  async note(progress: Progress): Promise<void> {
    const { clock } = this.#dependencies.runtime;
    await this.#change({ ...progress, notedMs: this.#nextMs() });
    if (clock.monotonicMs() - this.#toldMs < IMPORT_PROGRESS_MS) return;
    this.#toldMs = clock.monotonicMs();
    await this.#dependencies.records.tell(this.open);
  }

  async decide(end: Omit<ImportEnd, "endedMs">): Promise<void> {
    const endedMs = this.#nextMs();
    await this.#change({ notedMs: endedMs, end: { ...end, endedMs } });
  }

  async settle(): Promise<void> {
    await this.#dependencies.records.tell(this.open);
    await this.#dependencies.store.remove(this.open);
  }

  async #change(changes: Partial<OpenImport>): Promise<void> {
    const changed = await this.#dependencies.store.change(this.#held, changes);
    if (!changed) throw new Lost();
    this.#held = changed;
  }

  #nextMs(): number {
    return Math.max(this.#dependencies.runtime.clock.nowMs(), this.open.notedMs + 1);
  }
}
