import { mapLimited } from "../../../../common/concurrency.ts";
import { AppError, isAppError } from "../../../../common/errors.ts";
import { FILE_IMPORT_PARALLEL_FILES, FILE_WORK_ATTEMPTS, FILE_WORK_RETRY_MS } from "../../../../common/limits.ts";
import { wait } from "../../../../common/time.ts";
import type { ZipArchive } from "../../../archives/zip-reading.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Stores } from "../../../store/engine.ts";
import { isTransient } from "../../../store/journal/index.ts";
import type { TenantRoom } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { keepInRoom } from "../../tenants/index.ts";
import type { HeldContent } from "../entries.ts";
import { changingIndexed, replacing, type IndexKeeper } from "../search/keeper.ts";
import { replacedEntries, type FileStore } from "../store.ts";
import { batches, type FoundFile, type ImportChecks } from "./import-checks.ts";
import { importMark, type FileImportJournal, type OpenFileImport, type VersionedFileImport } from "./import-journal.ts";
import type { ImportPlan, PlannedFile } from "./import-plan.ts";

export interface ImportRunDependencies {
  readonly stores: Stores;
  readonly runtime: Runtime;
  readonly store: FileStore;
  readonly journal: FileImportJournal;
  readonly checks: ImportChecks;
  /** Absent: contents are not searched. */
  readonly keeper?: IndexKeeper | undefined;
  /** Absent: tenants have no quota. */
  readonly room?: TenantRoom | undefined;
  readonly signal: AbortSignal;
}

/** Writes the files of a checked import, batch by batch. */
export class ImportRun {
  readonly #principal: Principal;
  readonly #archive: ZipArchive;
  readonly #with: ImportRunDependencies;
  #held: VersionedFileImport;
  #written = 0;
  /** True while it is not known which rows of the last batch are written. */
  #isUnsure = false;

  constructor(
    principal: Principal,
    archive: ZipArchive,
    { held, ...dependencies }: ImportRunDependencies & { readonly held: VersionedFileImport },
  ) {
    this.#principal = principal;
    this.#archive = archive;
    this.#held = held;
    this.#with = dependencies;
  }

  /** Writes everything. The error of a part says how many files were written: each of these is whole. */
  async run({ files, folders }: ImportPlan): Promise<void> {
    try {
      await this.#makeFolders(folders);
      for (const batch of batches(files)) {
        await this.#retried(() => this.#write(batch));
        this.#written += batch.length;
      }
      // Repeat this: a folder may have been removed meanwhile.
      await this.#makeFolders(folders);
      // Also proves that the import was not taken for abandoned.
      await this.#step([]);
    } catch (error) {
      await this.#leave();
      throw this.#told(error, files.length);
    }
    await this.#with.journal.end(this.#held.open);
  }

  async #makeFolders(folders: ImportPlan["folders"]): Promise<void> {
    for (const some of batches(folders)) await this.#retried(() => this.#with.store.makeFolders(this.#principal, some));
  }

  /**
   * The journal names the contents before they are stored, so that no mark of theirs is lost. Each attempt uses the same
   * marks.
   */
  async #write(batch: readonly PlannedFile[]): Promise<void> {
    const { store, checks, keeper } = this.#with;
    const found = await checks.found(batch);
    await this.#step(this.#imported(found));
    const contents = await this.#keep(found);
    this.#isUnsure = true;
    const rows = found.map((file, at) => ({ ...checks.row(file), ...contents[at] }));
    const change = replacing(
      this.#held.open.space,
      found.map(({ former }) => former),
    );
    const replaced = found.map(({ former }, at) => ({ former, content: contents[at] }));
    const { startedMs } = this.#held.open;
    await store.keep(this.#principal, replacedEntries(replaced), { cause: "replaced", atMs: startedMs });
    const write = (): Promise<void> => store.insert(this.#principal, rows);
    await changingIndexed(keeper, this.#principal, { change, write });
    this.#isUnsure = false;
    await store.release(
      this.#principal,
      this.#held.open.batch.flatMap(({ formers }) => formers),
    );
  }

  /** The record of these files. A repeated attempt keeps the contents that an earlier one may have replaced. */
  #imported(found: readonly FoundFile[]): OpenFileImport["batch"] {
    const earlier = new Map(this.#held.open.batch.map(({ fullname, formers }) => [fullname, formers]));
    return found.map(({ fullname, digest, former }) => {
      const isOwn = former?.content?.mark === importMark(this.#held.open, fullname);
      const now = former?.content && !isOwn ? [former.content] : [];
      return { fullname, digest, formers: [...(earlier.get(fullname) ?? []), ...now] };
    });
  }

  async #step(batch: OpenFileImport["batch"]): Promise<void> {
    const { journal } = this.#with;
    const step = await journal.step(this.#held, { batch });
    if (step) this.#held = step;
    else await this.#markAgain();
  }

  /**
   * Another controller has taken this import for abandoned. It may have removed marks of the last batch before its rows
   * were written, so they are set again.
   */
  async #markAgain(): Promise<never> {
    const { store } = this.#with;
    const { batch, space } = this.#held.open;
    const found = await store.get(
      this.#principal,
      batch.map(({ fullname }) => ({ space, fullname })),
    );
    const named = batch.flatMap(({ fullname, digest }, at) => {
      const mark = importMark(this.#held.open, fullname);
      return found[at]?.content?.mark === mark ? [{ digest, mark }] : [];
    });
    await store.mark(this.#principal, named);
    throw new AppError("unavailable", "This controller was held up, and another one has ended the import.");
  }

  /** Stores the contents. Resolves or fails when none is being stored any more. */
  async #keep(files: readonly FoundFile[]): Promise<readonly HeldContent[]> {
    const failures: unknown[] = [];
    const contents = await mapLimited(files, FILE_IMPORT_PARALLEL_FILES, async (file) => {
      if (failures.length > 0) return undefined;
      return this.#keepOne(file).catch((error: unknown) => void failures.push(error));
    });
    if (failures.length > 0) throw failures[0];
    return contents.filter((content) => content !== undefined);
  }

  async #keepOne({ entry, fullname, digest: planned }: FoundFile): Promise<HeldContent> {
    const { stores, room } = this.#with;
    const { tenant } = this.#principal;
    const { blobs } = await stores.tenant(tenant);
    const mark = importMark(this.#held.open, fullname);
    const { digest } = await keepInRoom({ room, tenant }, this.#archive.read(entry), (bytes) => blobs.put(bytes, mark));
    if (digest !== planned) throw new AppError("internal", `The archive changed while ${fullname} was written.`);
    return { digest, mark };
  }

  async #retried(work: () => Promise<void>): Promise<void> {
    const { runtime, signal } = this.#with;
    for (let attempt = 1; ; attempt += 1) {
      signal.throwIfAborted();
      try {
        return await work();
      } catch (error) {
        if (!isTransient(error) || isAppError(error, "internal") || attempt >= FILE_WORK_ATTEMPTS) throw error;
        await wait(runtime.clock, FILE_WORK_RETRY_MS * attempt, signal);
      }
    }
  }

  /** Cleans up after an error. If it cannot, the entry stays in the journal, and maintenance cleans up later. */
  async #leave(): Promise<void> {
    if (this.#isUnsure) return;
    try {
      await cleanUp(this.#principal, this.#held.open, this.#with);
    } catch (error) {
      this.#with.runtime.log.warn({ err: error, import: this.#held.open.id }, "an import of files is cleaned up later");
    }
  }

  #told(error: unknown, count: number): unknown {
    if (!isAppError(error)) return error;
    const text = `${error.message} ${this.#written} of ${count} files were written, each of them whole; import the archive again to write all.`;
    return new AppError(error.code, text, { cause: error, details: { written: this.#written, files: count } });
  }
}

/** Removes the marks of the last batch that no file names, new ones and replaced ones. Then ends the import. */
export async function cleanUp(
  principal: Principal,
  open: OpenFileImport,
  { store, journal }: Pick<ImportRunDependencies, "store" | "journal">,
): Promise<void> {
  const places = open.batch.map(({ fullname }) => ({ space: open.space, fullname }));
  const found = await store.get(principal, places);
  const loose = open.batch.flatMap(({ fullname, digest, formers }, at) => {
    const contents = [{ digest, mark: importMark(open, fullname) }, ...formers];
    return contents.filter(({ mark }) => mark !== found[at]?.content?.mark);
  });
  await store.release(principal, loose);
  await journal.end(open);
}
