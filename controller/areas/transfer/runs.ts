import { isAppError } from "../../../common/errors.ts";
import { IMPORT_CHUNK_ATTEMPTS, IMPORT_CHUNK_RETRY_MS, IMPORT_PROGRESS_MS } from "../../../common/limits.ts";
import { wait } from "../../../common/time.ts";
import type { Runtime } from "../../runtime.ts";
import { isTransient } from "../../store/journal/index.ts";
import type { Objects } from "../objects/index.ts";
import { UnstoredRows } from "../query/index.ts";
import type { TransferRecords } from "./records.ts";
import { PastNotes } from "./past/notes.ts";
import { scriptParts } from "./source.ts";
import type { ImportEnd, ImportJournal, OpenImport, ScriptStore, VersionedImport } from "./store.ts";
import type { TimedRows } from "./timed.ts";
import { ScriptWriter, type Progress, type WriteNotes } from "./write.ts";

export interface RunDependencies {
  readonly journal: ImportJournal;
  readonly scripts: ScriptStore;
  readonly records: TransferRecords;
  readonly objects: Objects;
  readonly runtime: Runtime;
}

/** Thrown if another controller has taken the import, or if the import has already ended. */
class Lost extends Error {}

/**
 * Writes checked and staged imports. An interrupted import stays open: any controller that finds it abandoned, also the
 * same one, continues from the last stored progress. The end of an import is decided once.
 */
export class ImportRuns {
  readonly #dependencies: RunDependencies;

  constructor(dependencies: RunDependencies) {
    this.#dependencies = dependencies;
  }

  /** Resolves with the import when it has ended or paused, or when another controller has taken it. */
  start(mine: VersionedImport): Promise<OpenImport> {
    const { id } = mine.open;
    const running = this.#dependencies.journal.inFlight.carry([id], () => this.#run(mine));
    running.catch((error: unknown) =>
      this.#dependencies.runtime.log.error({ err: error, transfer: id }, "an import broke off"),
    );
    return running;
  }

  /**
   * Continues abandoned imports. Call it periodically and when a controller has left. Several controllers may call it
   * at once.
   */
  async maintain(tenant: string): Promise<void> {
    const { journal } = this.#dependencies;
    for await (const found of journal.abandoned(tenant)) {
      const mine = await journal.take(found);
      if (mine?.open.staged) void this.start(mine).catch(() => undefined);
      else if (mine) await journal.inFlight.carry([mine.open.id], () => remove(mine.open, this.#dependencies));
    }
  }

  async #run(held: VersionedImport): Promise<OpenImport> {
    const mine = new HeldImport(held, this.#dependencies);
    try {
      if (!mine.open.end) await mine.decide(await this.#write(mine));
      await mine.settle();
    } catch (error) {
      if (!(error instanceof Lost) && !isTransient(error)) throw error;
    }
    return mine.open;
  }

  /**
   * Writes the import. During a short outage of the stores, retries from the last stored progress. Returns how the
   * import ended. Throws if it must pause.
   */
  async #write(mine: HeldImport): Promise<Omit<ImportEnd, "endedMs">> {
    const { journal, runtime } = this.#dependencies;
    const { stopping } = journal.inFlight;
    for (let attempt = 1; ; attempt += 1) {
      const before = mine.open.notedMs;
      try {
        await this.#writeOnce(mine);
        return { state: "done", message: warningsOf(mine.open).join("\n") };
      } catch (error) {
        if (isAppError(error) && !isTransient(error))
          return { state: "failed", code: error.code, message: error.message };
        if (mine.open.notedMs > before) attempt = 1;
        if (!isAppError(error) || error.code === "internal" || stopping.aborted || attempt >= IMPORT_CHUNK_ATTEMPTS)
          throw error;
        await wait(runtime.clock, IMPORT_CHUNK_RETRY_MS * attempt, stopping);
      }
    }
  }

  async #writeOnce(mine: HeldImport): Promise<void> {
    const { journal, scripts, objects, runtime } = this.#dependencies;
    const { open } = mine;
    const writer = new ScriptWriter({ objects, clock: runtime.clock, notes: mine }, open, open);
    await writer.write(() => scriptParts(scripts.read(open)), journal.inFlight.stopping);
  }
}

/** An import that this controller writes. Stores the progress of the writer in the journal. */
class HeldImport implements WriteNotes {
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

  async timed(timed: TimedRows): Promise<void> {
    this.#keep(await this.#dependencies.journal.step(this.#held, { timed }));
  }

  async saved(progress: Progress): Promise<void> {
    const { journal, records, runtime } = this.#dependencies;
    this.#keep(await journal.step(this.#held, { ...progress, notedMs: this.#nextMs() }));
    if (runtime.clock.monotonicMs() - this.#toldMs < IMPORT_PROGRESS_MS) return;
    this.#toldMs = runtime.clock.monotonicMs();
    await records.tell(this.open);
  }

  async decide(end: Omit<ImportEnd, "endedMs">): Promise<void> {
    this.#keep(await this.#dependencies.journal.decide(this.#held, { ...end, endedMs: this.#nextMs() }));
  }

  async settle(): Promise<void> {
    await this.#dependencies.records.tell(this.open);
    await remove(this.open, this.#dependencies);
  }

  #keep(changed: VersionedImport | undefined): void {
    if (!changed) throw new Lost();
    this.#held = changed;
  }

  #nextMs(): number {
    return Math.max(this.#dependencies.runtime.clock.nowMs(), this.open.notedMs + 1);
  }
}

/**
 * Ends an import. Releases the script first: if the controller stops before the entry is removed, another one repeats
 * this.
 */
async function remove(open: OpenImport, { scripts, journal }: RunDependencies): Promise<void> {
  await scripts.release(open);
  await journal.end(open);
}

/** Lines about data that the import did not store; empty if there is none. */
function warningsOf({ unstored, past }: OpenImport): readonly string[] {
  return [...new UnstoredRows(unstored).warnings(), ...new PastNotes(past?.note).warnings()];
}
