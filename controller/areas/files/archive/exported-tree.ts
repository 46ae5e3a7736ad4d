import { AppError } from "../../../../common/errors.ts";
import { FILE_ARCHIVE_ENTRIES_MAX } from "../../../../common/limits.ts";
import { isInside } from "../../../../common/paths.ts";
import type { ThreadSlices } from "../../../turns/slices.ts";
import { sortedInSlices } from "../../../turns/sorting.ts";
import type { Principal } from "../../permissions/index.ts";
import type { FileEntry } from "../entries.ts";
import type { Place } from "../names.ts";
import type { FileStore } from "../store.ts";
import type { FileVisibility } from "../visible.ts";

/** A file of an export, as it was when the export began. */
export interface ExportedFile {
  readonly fullname: string;
  readonly digest: string;
  readonly size: number;
  readonly modifiedMs: number;
}

export interface ExportedTree {
  readonly folders: readonly Pick<ExportedFile, "fullname" | "modifiedMs">[];
  readonly files: readonly ExportedFile[];
}

interface Walking {
  readonly store: FileStore;
  readonly visibility: FileVisibility;
  readonly slices: Pick<ThreadSlices, "isOverNow" | "pause">;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The files and folders at these places and below them, each once, in the order of their paths. As for a copy, all of
 * them must be fully visible to the caller: `AppError("denied")` names the first one that is not. So an archive is never
 * incomplete without an error. `AppError("not_found")` if nothing visible is at one of the places, `too_large` beyond
 * `FILE_ARCHIVE_ENTRIES_MAX` entries.
 */
export async function exportedTree(
  principal: Principal,
  places: readonly Place[],
  walking: Walking,
): Promise<ExportedTree> {
  const walk = new TreeWalk(principal, walking);
  for (const place of places) await walk.take(place, places);
  return walk.tree;
}

class TreeWalk {
  readonly tree: { readonly folders: ExportedTree["folders"][number][]; readonly files: ExportedFile[] } = {
    folders: [],
    files: [],
  };
  readonly #principal: Principal;
  readonly #with: Walking;

  constructor(principal: Principal, walking: Walking) {
    this.#principal = principal;
    this.#with = walking;
  }

  /** Adds what is at the place, unless another of the places contains it. */
  async take(place: Place, all: readonly Place[]): Promise<void> {
    const { store, visibility } = this.#with;
    const entry = place.fullname === "/" ? undefined : await store.find(this.#principal, place);
    if (entry ? !visibility.shown(entry) : !(await this.#isFolder(place)))
      throw new AppError("not_found", `There is no file or folder ${place.fullname}.`);
    const isContained = all.some(({ fullname }) => fullname !== place.fullname && isInside(fullname, place.fullname));
    if (isContained) return;
    if (entry) this.#add(entry);
    if (!entry?.content) await this.#below(place);
  }

  /** The root, or a folder without an entry of its own. */
  async #isFolder(place: Place): Promise<boolean> {
    return place.fullname === "/" || this.#with.store.holdsAny(this.#principal, place);
  }

  async #below(folder: Place): Promise<void> {
    const { store, signal, slices } = this.#with;
    const entries: FileEntry[] = [];
    for await (const page of store.in(this.#principal, folder, signal)) {
      for (const entry of page) this.#requireVisible(entry);
      entries.push(...page);
      this.#requireFew(entries.length);
      if (slices.isOverNow()) await slices.pause();
    }
    for (const entry of await sortedInSlices(entries, ({ fullname }) => fullname, slices)) {
      this.#add(entry);
      if (slices.isOverNow()) await slices.pause();
      if (!entry.content) await this.#below(entry);
    }
  }

  #requireVisible(entry: FileEntry): void {
    this.#with.visibility.requireAllOf(entry);
    if (entry.content) this.#with.visibility.requireContent(entry);
  }

  #add(entry: FileEntry): void {
    this.#requireVisible(entry);
    const { fullname, content, size, modifiedMs } = entry;
    if (content) this.tree.files.push({ fullname, digest: content.digest, size, modifiedMs });
    else this.tree.folders.push({ fullname, modifiedMs });
    this.#requireFew(0);
  }

  #requireFew(more: number): void {
    const { files, folders } = this.tree;
    if (files.length + folders.length + more <= FILE_ARCHIVE_ENTRIES_MAX) return;
    const text = `An archive holds at most ${FILE_ARCHIVE_ENTRIES_MAX} files and folders: export parts of it.`;
    throw new AppError("too_large", text, { details: { limit: "FILE_ARCHIVE_ENTRIES_MAX" } });
  }
}
