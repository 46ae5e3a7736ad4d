import { mapLimited } from "../../../common/concurrency.ts";
import { AppError } from "../../../common/errors.ts";
import { FILE_BLOB_CALLS_IN_FLIGHT } from "../../../common/limits.ts";
import { newStamp, type Stamp } from "../../../common/revisions.ts";
import type { Row } from "../../../common/value.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import { TAGS_COLUMN, type OneCommit, type Unrestricted } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import { FILE_CLASS, STAMP_COLUMN } from "./classes.ts";
import { entryOf, placeColumns, platform, refOf, type FileEntry, type HeldContent } from "./entries.ts";
import type { Change } from "./history/former.ts";
import type { HistoryStore } from "./history/store.ts";
import { foldersAbove, type Place } from "./names.ts";

interface Dependencies {
  readonly stores: Stores;
  readonly objects: Unrestricted<"get" | "read" | "insert" | "ingest" | "update" | "remove" | "writeTimes">;
  readonly runtime: Pick<Runtime, "clock" | "random">;
  /** See `FileChanges.settle`. */
  readonly settle: (tenant: string, places: readonly Place[]) => Promise<void>;
  readonly history: HistoryStore;
}

/**
 * Storage of files and folders: rows of `/filesystem` and contents in the blob store. Checks no rights: the service has
 * checked the permissions, and the rows are accessed with the platform's rights.
 */
export class FileStore {
  readonly #with: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#with = dependencies;
  }

  async find(principal: Principal, place: Place): Promise<FileEntry | undefined> {
    return (await this.get(principal, [place]))[0];
  }

  /** Entries in the order of `places`. */
  async get(principal: Principal, places: readonly Place[]): Promise<readonly (FileEntry | undefined)[]> {
    const refs = places.map((place) => refOf(principal, place));
    const rows = await this.#with.objects.unrestricted.get(platform(principal), refs);
    return rows.map((row) => row && entryOf(row));
  }

  /** Entries of a folder, page by page, in no order. */
  async *in(principal: Principal, folder: Place, signal?: AbortSignal): AsyncGenerator<readonly FileEntry[]> {
    const where = [{ kind: "equals", column: "parent", values: [folder.fullname] } as const];
    const request = { class: principal.ospace + FILE_CLASS.path, subtree: false, where, ...(signal && { signal }) };
    for await (const rows of this.#with.objects.unrestricted.read(platform(principal), request)) {
      const found = rows.filter(
        ({ values }) => values["parent"] === folder.fullname && values["space"] === folder.space,
      );
      if (found.length > 0) yield found.map(entryOf);
    }
  }

  /** True if something lies in the folder. */
  async holdsAny(principal: Principal, folder: Place): Promise<boolean> {
    for await (const _ of this.in(principal, folder)) return true;
    return false;
  }

  /** Writes rows with a new revision. Changes of single files are made by `FileChanges`. */
  async insert(principal: Principal, rows: readonly Row[]): Promise<void> {
    const stamp = stampColumn(newStamp(principal.user, this.#with.runtime));
    const stamped = rows.map((row) => ({ ...row, ...stamp }));
    await this.#with.objects.unrestricted.insert(platform(principal), principal.ospace + FILE_CLASS.path, stamped);
  }

  /** Makes the folders that are missing. `AppError("conflict")` if one of the places is a file. */
  async makeFolders(principal: Principal, places: readonly Place[]): Promise<void> {
    const found = await this.requireNoFiles(principal, places);
    const missing = places.filter((_, at) => !found[at]);
    if (missing.length > 0)
      await this.insert(
        principal,
        missing.map((place) => this.folderRow(principal, place)),
      );
  }

  /** Returns the entries like `get`. `AppError("conflict")` if one of the places is a file. */
  async requireNoFiles(principal: Principal, places: readonly Place[]): Promise<readonly (FileEntry | undefined)[]> {
    const found = await this.get(principal, places);
    const file = found.find((entry) => entry?.content);
    if (file) throw new AppError("conflict", `${file.fullname} is a file, and nothing lies in a file.`);
    return found;
  }

  /** Makes the folders above the place. */
  makeFoldersAbove(principal: Principal, place: Place): Promise<void> {
    return this.makeFolders(principal, foldersAbove(place));
  }

  folderRow(principal: Principal, place: Place): Row {
    const modified = this.#with.runtime.clock.nowMs();
    return { ...placeColumns(place), ftype: "dir", size: 0, owner: principal.user, modified };
  }

  /** A time for a write of each place that may be repeated; see `ObjectWrites`. */
  writeTimes(principal: Principal, places: readonly Place[]): Promise<readonly number[]> {
    const refs = places.map((place) => refOf(principal, place));
    return this.#with.objects.unrestricted.writeTimes(platform(principal), refs);
  }

  /** Writes the row, or removes it, at a time that was chosen before. A repetition changes nothing. */
  async apply(principal: Principal, { place, kind, row, writeUs, createdMs }: RowChange): Promise<void> {
    const { objects } = this.#with;
    const [owner, ref] = [platform(principal), refOf(principal, place)];
    if (kind === "remove") await objects.unrestricted.remove(owner, [ref], { writeUs });
    else if (kind === "update") {
      const edits = Object.entries(row).map(([column, value]) => ({ column, operation: "set", value }) as const);
      await objects.unrestricted.update(owner, ref, edits, { writeUs });
    } else await this.make(principal, { place, row, writeUs, createdMs });
  }

  /** Makes an entry. `commit` has further writes for its commit, on stores with `spansSeams`. */
  async make(principal: Principal, { place, row, writeUs, createdMs }: NewRow, commit: OneCommit = {}): Promise<void> {
    const ref = refOf(principal, place);
    const times = { timeMs: createdMs, createdMs, ...(writeUs !== undefined && { writeUs }) };
    const record = { values: row, identity: ref.id, ...times };
    await this.#with.objects.unrestricted.ingest(platform(principal), ref.class, [record], commit);
  }

  /**
   * Reads the entries of these places and returns a function that removes them. The removal does not affect anything
   * written to these places after this call. With `change`, the history keeps the entries.
   */
  async toTake(principal: Principal, places: readonly Place[], change?: Change): Promise<Taking> {
    const refs = places.map((place) => refOf(principal, place));
    // Read the times before the entries. A removal with these times spares everything that is written later.
    const times = await this.#with.objects.unrestricted.writeTimes(platform(principal), refs);
    // A decided change has its time already: it must be in the entries, or be decided anew.
    await this.#with.settle(principal.tenant, places);
    const entries = (await this.get(principal, places)).filter((entry) => entry !== undefined);
    const timeOf = new Map(refs.map(({ id }, at) => [id, times[at]]));
    return { entries, take: (taken) => this.#take(principal, taken, { timeOf, change }) };
  }

  /**
   * Removes the entries, and the marks of their contents first, unless the history keeps them. If the controller dies in
   * between, the rows are still there for the next try, so no mark is left over.
   */
  async #take(principal: Principal, entries: readonly FileEntry[], { timeOf, change }: Removal): Promise<void> {
    if (change) await this.#with.history.keep(principal, entries, change);
    await this.release(
      principal,
      entries.flatMap(({ content }) => content ?? []),
    );
    for (const writeUs of new Set(entries.map(({ id }) => timeOf.get(id)))) {
      const refs = entries.filter(({ id }) => timeOf.get(id) === writeUs).map((entry) => refOf(principal, entry));
      await this.#with.objects.unrestricted.remove(platform(principal), refs, writeUs === undefined ? {} : { writeUs });
    }
  }

  /** See `HistoryStore.keep`. */
  keep(principal: Principal, entries: readonly FileEntry[], change: Change): Promise<void> {
    return this.#with.history.keep(principal, entries, change);
  }

  /** Removes the marks of contents that no file has any more, except of those that the history keeps. */
  async release(principal: Principal, contents: readonly HeldContent[]): Promise<void> {
    await this.unmark(principal, await this.#with.history.loose(principal, contents));
  }

  async mark(principal: Principal, contents: readonly HeldContent[]): Promise<void> {
    const { blobs } = await this.#with.stores.tenant(principal.tenant);
    await mapLimited(contents, FILE_BLOB_CALLS_IN_FLIGHT, ({ digest, mark }) => blobs.mark(digest, mark));
  }

  async unmark(principal: Principal, contents: readonly HeldContent[]): Promise<void> {
    const { blobs } = await this.#with.stores.tenant(principal.tenant);
    await mapLimited(contents, FILE_BLOB_CALLS_IN_FLIGHT, ({ digest, mark }) => blobs.unmark(digest, mark));
  }
}

interface Removal {
  /** Times of the removals, by the ids of the entries. */
  readonly timeOf: ReadonlyMap<string, number | undefined>;
  readonly change: Change | undefined;
}

type NewRow = Pick<RowChange, "place" | "row" | "createdMs"> & Partial<Pick<RowChange, "writeUs">>;

/** A write of one row at a time that is fixed. */
export interface RowChange {
  readonly place: Place;
  readonly kind: "insert" | "update" | "remove";
  /** The columns that are set; empty for a removal. */
  readonly row: Row;
  readonly writeUs: number;
  readonly createdMs: number;
}

export function stampColumn(stamp: Stamp): Row {
  return { [STAMP_COLUMN]: JSON.stringify(stamp) };
}

/** See `FileStore.toTake`. */
export interface Taking {
  readonly entries: readonly FileEntry[];
  readonly take: (entries: readonly FileEntry[]) => Promise<void>;
}

/** The files whose content is replaced by another one. */
export function replacedEntries(
  put: readonly { readonly former: FileEntry | undefined; readonly content: HeldContent | undefined }[],
): readonly FileEntry[] {
  return put.flatMap(({ former, content }) =>
    former?.content && content && former.content.digest !== content.digest ? [former] : [],
  );
}

/** The row of an entry at another place, with another mark of its content. */
export function rowAt(place: Place, entry: FileEntry, content: HeldContent | undefined): Row {
  const { ftype, size, owner, attr, tags, modifiedMs, indexed } = entry;
  // A file that is replaced by one that is not searched stays in the search.
  const searched = indexed && { indexed };
  const own = { ftype, size, owner, attr, [TAGS_COLUMN]: [...tags], modified: modifiedMs, ...searched };
  return { ...placeColumns(place), ...own, ...content };
}

export { platform };
