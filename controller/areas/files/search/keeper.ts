import type { Principal } from "../../permissions/index.ts";
import type { FileEntry } from "../entries.ts";
import type { Place, Space } from "../names.ts";
import type { FileStore, Taking } from "../store.ts";

/** A change of searched files. */
export interface IndexedChange {
  readonly space: Space;
  /** Paths of files that get another content. */
  readonly paths: readonly string[];
  /** Digests of contents that files lose. */
  readonly lost: readonly string[];
}

/** Keeps the search in step with files. Each writer of `/filesystem` uses it. */
export interface IndexKeeper {
  /**
   * Call it before files change whose content is searched, and the returned function afterwards, also if the change
   * failed. If the controller dies in between, another one looks at these files.
   */
  changing(principal: Principal, change: IndexedChange): Promise<() => void>;
}

/** Runs a change of searched files. Without paths and digests it only runs it. */
export async function changingIndexed<T>(
  keeper: IndexKeeper | undefined,
  principal: Principal,
  { change, write }: { readonly change: IndexedChange; readonly write: () => Promise<T> },
): Promise<T> {
  if (!keeper || (change.paths.length === 0 && change.lost.length === 0)) return write();
  const changed = await keeper.changing(principal, change);
  try {
    return await write();
  } finally {
    changed();
  }
}

/** Digests of the entries whose content is searched. */
export function searchedDigests(entries: readonly (FileEntry | undefined)[]): readonly string[] {
  return [...new Set(entries.flatMap((entry) => (entry?.indexed && entry.content ? [entry.content.digest] : [])))];
}

/** The change that gives these files other contents. */
export function replacing(space: Space, formers: readonly (FileEntry | undefined)[]): IndexedChange {
  const paths = formers.flatMap((former) => (former?.indexed ? [former.fullname] : []));
  return { space, paths, lost: searchedDigests(formers) };
}

interface Replacing {
  readonly place: Place;
  readonly before: FileEntry | undefined;
  /** False if the write keeps the content of the file. */
  readonly isContent: boolean;
  readonly write: () => Promise<void>;
}

/** Writes of single files, with which the search keeps in step. */
export class IndexedWrites {
  readonly #store: FileStore;
  readonly #keeper: IndexKeeper | undefined;

  constructor(store: FileStore, keeper: IndexKeeper | undefined) {
    this.#store = store;
    this.#keeper = keeper;
  }

  /** Runs a write of one file. If the file is included in the search meanwhile, its new content is indexed as well. */
  async replace(principal: Principal, { place, before, isContent, write }: Replacing): Promise<void> {
    const change = { space: place.space, paths: [place.fullname], lost: searchedDigests([before]) };
    if (!this.#keeper || !isContent) return write();
    if (before?.indexed) return changingIndexed(this.#keeper, principal, { change, write });
    await write();
    if ((await this.#store.find(principal, place))?.indexed) (await this.#keeper.changing(principal, change))();
  }

  /** Runs the removal of one file. */
  remove(principal: Principal, { before, write }: Pick<Replacing, "before" | "write">): Promise<void> {
    return this.take(principal, { entries: before ? [before] : [], take: write });
  }

  /** Removes these entries of one space by `take`. */
  take(principal: Principal, { entries, take }: Taking): Promise<void> {
    const change = { space: entries[0]?.space ?? "user", paths: [], lost: searchedDigests(entries) };
    return changingIndexed(this.#keeper, principal, { change, write: () => take(entries) });
  }
}
