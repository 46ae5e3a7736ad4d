import { addAbortSignal, type Readable } from "node:stream";
import { AppError } from "../../../../common/errors.ts";
import { ulidOf } from "../../../../common/ids.ts";
import {
  FILE_ARCHIVE_ENTRIES_MAX,
  FILE_ARCHIVE_RATIO_FREE_BYTES,
  FILE_ARCHIVE_RATIO_MAX,
  FILE_ARCHIVE_UNPACKED_MAX_BYTES,
  FILE_ARCHIVES_AT_ONCE_MAX,
  FILE_EXPORT_SOURCES_MAX,
} from "../../../../common/limits.ts";
import type { Encoding } from "../../../../common/text/encodings.ts";
import type { ArchiveBounds } from "../../../archives/bounds.ts";
import { ZipArchive } from "../../../archives/zip-reading.ts";
import type { Runtime } from "../../../runtime.ts";
import type { JournalDependencies } from "../../../store/journal/index.ts";
import { ThreadSlices } from "../../../turns/slices.ts";
import type { TenantRoom } from "../../objects/index.ts";
import { requirePermission, systemPrincipal, type Principal } from "../../permissions/index.ts";
import type { HidingGuard } from "../hiding.ts";
import { nameOf, placeOf, type FileName, type Space } from "../names.ts";
import { openPlace } from "../open-places.ts";
import { requireSpace } from "../spaces.ts";
import type { FileStore } from "../store.ts";
import type { IndexKeeper } from "../search/keeper.ts";
import type { FileVisibility } from "../visible.ts";
import { exportedBytes } from "./exported-bytes.ts";
import { exportedTree } from "./exported-tree.ts";
import { ImportChecks } from "./import-checks.ts";
import { FileImportJournal } from "./import-journal.ts";
import { importPlan, listed, type ImportPlan } from "./import-plan.ts";
import { cleanUp, ImportRun, type ImportRunDependencies } from "./import-run.ts";

export interface FileArchiveDependencies extends JournalDependencies {
  readonly runtime: Runtime;
  readonly store: FileStore;
  readonly hiding: HidingGuard;
  /** Absent: contents are not searched. */
  readonly keeper?: IndexKeeper | undefined;
  /** Absent: tenants have no quota. */
  readonly room?: TenantRoom | undefined;
  readonly visibilityOf: (principal: Principal) => Promise<FileVisibility>;
}

export interface ExportedArchive {
  readonly filename: string;
  /** The zip archive. It fails if a content cannot be read, so that an incomplete archive is never taken for a whole. */
  readonly bytes: Readable;
}

/** A zip archive in a local file. */
export interface UploadedArchive {
  readonly path: string;
  /** Encoding of names for which the archive states none. Default: UTF-8. */
  readonly names?: Encoding | undefined;
}

interface ImportOptions {
  readonly space: Space;
  /** Number of levels of the paths in the answer. Absent: whole paths. */
  readonly depth?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface ImportedArchive {
  /** First the folder that contains everything, then the paths that were unpacked, cut to `depth` levels. */
  readonly paths: readonly string[];
  readonly files: number;
  readonly folders: number;
  /** Bytes of all files. */
  readonly bytes: number;
  readonly warnings: readonly string[];
}

const BOUNDS: ArchiveBounds = {
  entriesMax: FILE_ARCHIVE_ENTRIES_MAX,
  unpackedMaxBytes: FILE_ARCHIVE_UNPACKED_MAX_BYTES,
  ratioMax: FILE_ARCHIVE_RATIO_MAX,
  ratioFreeBytes: FILE_ARCHIVE_RATIO_FREE_BYTES,
};

/** Zip archives of files and folders. */
export class FileArchives {
  readonly #with: FileArchiveDependencies;
  readonly #journal: FileImportJournal;
  readonly #atOnce = new Map<string, number>();

  constructor(dependencies: FileArchiveDependencies) {
    this.#with = dependencies;
    this.#journal = new FileImportJournal(dependencies);
  }

  /**
   * Packs files, and folders with everything below them, under their whole paths. Everything is looked up and checked
   * before the archive begins; see `exportedTree` for the errors. Reading ends when `signal` fires.
   */
  async export(principal: Principal, names: readonly FileName[], signal?: AbortSignal): Promise<ExportedArchive> {
    requirePermission(principal, "files:read");
    if (names.length === 0) throw new AppError("invalid", "srcpath is missing: it names what to export.");
    if (names.length > FILE_EXPORT_SOURCES_MAX)
      throw new AppError("too_large", `One export has at most ${FILE_EXPORT_SOURCES_MAX} values of srcpath.`);
    const places = sorted(names).map((name) => openPlace(principal, placeOf(name)));
    const leave = this.#enter(principal.tenant);
    try {
      const { stores, runtime, store, visibilityOf } = this.#with;
      const slices = new ThreadSlices({ tenant: principal.tenant, clock: runtime.clock, signal });
      const visibility = await visibilityOf(principal);
      const tree = await exportedTree(principal, places, { store, visibility, slices, signal });
      const { blobs } = await stores.tenant(principal.tenant);
      signal?.throwIfAborted();
      const bytes = exportedBytes(tree, { blobs, slices });
      // Without a listener, an archive that fails before it is sent would end the process.
      bytes.once("close", leave).on("error", () => undefined);
      if (signal) addAbortSignal(signal, bytes);
      return { filename: filenameOf(places.map(({ fullname }) => fullname)), bytes };
    } catch (error) {
      leave();
      throw error;
    }
  }

  /**
   * Unpacks a zip archive at the paths that it states, with the same rights as a write of each file. Replaces files and
   * merges folders. Everything is checked before the first write: entries, contents, kinds of existing entries, rights,
   * room. If a write fails afterwards, the error says how many files were written; each file is whole, old or new.
   */
  async import(principal: Principal, upload: UploadedArchive, options: ImportOptions): Promise<ImportedArchive> {
    requirePermission(principal, "files:write");
    requireSpace(principal, options.space);
    const leave = this.#enter(principal.tenant);
    try {
      await using archive = await ZipArchive.open(upload.path, { bounds: BOUNDS, names: upload.names });
      return await this.#import(principal, archive, options);
    } finally {
      leave();
    }
  }

  /** Cleans up after imports whose controller has died. */
  async maintain(tenant: string): Promise<void> {
    for await (const found of this.#journal.abandoned(tenant)) {
      const mine = await this.#journal.take(found);
      if (!mine) continue;
      const { open } = mine;
      const as = { ...systemPrincipal(open.tenant, open.ospace, open.traceparent), user: open.user };
      await this.#journal.inFlight.carry([open.id], () => cleanUp(as, open, { ...this.#with, journal: this.#journal }));
    }
  }

  /** Stops imports between two of their batches. */
  close(): Promise<void> {
    return this.#journal.inFlight.close();
  }

  async #import(
    principal: Principal,
    archive: ZipArchive,
    { space, depth, signal }: ImportOptions,
  ): Promise<ImportedArchive> {
    const { runtime, room, visibilityOf } = this.#with;
    const ends = AbortSignal.any([this.#journal.inFlight.stopping, ...(signal ? [signal] : [])]);
    const slices = new ThreadSlices({ tenant: principal.tenant, clock: runtime.clock, signal: ends });
    const plan = await importPlan(principal, archive, { space, slices });
    const nowMs = (): number => runtime.clock.nowMs();
    const checks = new ImportChecks(principal, { ...this.#with, visibility: await visibilityOf(principal), nowMs });
    await checks.requireAll(plan, ends);
    await room?.require(principal.tenant, { objects: 0, bytes: archive.unpackedBytes });
    const warnings = await checks.warnings(plan);
    await this.#write(principal, archive, { plan, space, checks, signal: ends });
    return {
      paths: await listed(plan, depth, slices),
      files: plan.files.length,
      folders: plan.folders.length,
      bytes: archive.unpackedBytes,
      warnings,
    };
  }

  async #write(
    principal: Principal,
    archive: ZipArchive,
    { plan, space, ...run }: Pick<ImportRunDependencies, "checks" | "signal"> & { plan: ImportPlan; space: Space },
  ): Promise<void> {
    const { tenant, ospace, user, traceparent } = principal;
    const { clock, random } = this.#with.runtime;
    const startedMs = clock.nowMs();
    const id = ulidOf(startedMs, random.bytes(10));
    const journal = this.#journal;
    await journal.inFlight.carry([id], async () => {
      const held = await journal.begin({ id, tenant, ospace, user, traceparent, space, startedMs, batch: [] });
      await new ImportRun(principal, archive, { ...this.#with, ...run, journal, held }).run(plan);
    });
  }

  /** Takes a place among the archives of the tenant. Returns the function that gives it back. */
  #enter(tenant: string): () => void {
    const count = this.#atOnce.get(tenant) ?? 0;
    if (count >= FILE_ARCHIVES_AT_ONCE_MAX)
      throw new AppError("limited", `At most ${FILE_ARCHIVES_AT_ONCE_MAX} exports and imports of files run at once.`);
    this.#atOnce.set(tenant, count + 1);
    return () => {
      const left = (this.#atOnce.get(tenant) ?? 1) - 1;
      if (left > 0) this.#atOnce.set(tenant, left);
      else this.#atOnce.delete(tenant);
    };
  }
}

/** The names in the order of their places, each place once. */
function sorted(names: readonly FileName[]): readonly FileName[] {
  const byPlace = new Map(names.map((name) => [placeOf(name).fullname, name]));
  return [...byPlace].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, name]) => name);
}

/** Name of the archive: that of the only file or folder in it. */
function filenameOf([fullname = "/", ...others]: readonly string[]): string {
  return `${others.length > 0 || fullname === "/" ? "files" : nameOf(fullname)}.zip`;
}
