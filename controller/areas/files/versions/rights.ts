import { TAGS_COLUMN } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import type { FileEntry } from "../entries.ts";
import type { HidingGuard } from "../hiding.ts";
import type { Place } from "../names.ts";
import { rowAt, type FileStore } from "../store.ts";
import type { FileVisibility } from "../visible.ts";
import type { KeptTreeProgress, OpenFileWork } from "../work-journal.ts";
import type { KeptEntries } from "./kept-entries.ts";
import type { KeptTree, KeptTrees } from "./records.ts";
import { entriesBelow } from "./walk.ts";

/** The user of work with a kept tree. */
export interface WorkRights {
  /** The user, or the platform in the user's name. */
  readonly principal: Principal;
  readonly visibility: FileVisibility;
  /** See `OpenFileWork`. */
  readonly hidesNothing?: true | undefined;
  readonly signal?: AbortSignal;
}

interface Dependencies {
  readonly store: FileStore;
  readonly trees: KeptTrees;
  readonly entries: KeptEntries;
  readonly hiding: HidingGuard;
}

/**
 * Checks of whole trees. They are made before work begins, so that denied work excludes no other work, and again by the
 * work before its first change, when no other work of the path comes in between. So denied work changes nothing.
 */
export class TreeRights {
  readonly #with: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#with = dependencies;
  }

  /**
   * `AppError("denied")` unless the user may write every entry that work with this kept tree writes, and could remove
   * every entry of a kept tree that it replaces or removes.
   */
  async require(rights: WorkRights, { kind, root, key, name }: AskedTree): Promise<void> {
    if (rights.visibility.rules === undefined && !rights.hidesNothing) return;
    const { trees } = this.#with;
    const { tenant } = rights.principal;
    const tree = await trees.get(tenant, key);
    if (kind === "restore") return tree && this.#requireRestoring(rights, tree);
    if (tree) await this.#requireReleasing(rights, tree);
    // A snapshot replaces those below it.
    if (kind === "release" || name !== undefined) return;
    for (const below of await trees.snapshotsBelow(tenant, root)) await this.#requireReleasing(rights, below);
  }

  /** `AppError("denied")` unless the user sees all of every entry of the tree. */
  async requireSeeing({ principal, visibility }: WorkRights, place: Place): Promise<void> {
    if (visibility.rules === undefined) return;
    for await (const page of entriesBelow(this.#with.store, principal, place))
      for (const entry of page) visibility.requireAllOf(entry);
  }

  async #requireReleasing({ principal, visibility, signal }: WorkRights, tree: KeptTree): Promise<void> {
    if (visibility.rules === undefined) return;
    for await (const page of this.#with.entries.all(principal, tree, signal))
      for (const entry of page) visibility.requireWriting(entry, { before: entry, columns: [] });
  }

  async #requireRestoring(rights: WorkRights, tree: KeptTree): Promise<void> {
    const { store, entries, hiding } = this.#with;
    const { principal, visibility, hidesNothing, signal } = rights;
    for await (const page of entriesBelow(store, principal, tree, signal))
      for (const entry of page) visibility.requireWriting(entry, { before: entry, columns: [] });
    for await (const page of entries.all(principal, tree, signal)) {
      const former = await store.get(principal, page);
      for (const [at, entry] of page.entries()) requireRestoring(visibility, entry, former[at]);
      if (hidesNothing) await hiding.requireNothingHidden(principal, newFiles(page, former));
    }
  }
}

interface AskedTree extends Pick<KeptTreeProgress, "key" | "name"> {
  readonly kind: OpenFileWork["kind"];
  readonly root: Place;
}

/** `AppError("denied")` unless the user sees all of the entry and may write it in place of `former`. */
export function requireRestoring(visibility: FileVisibility, entry: FileEntry, former: FileEntry | undefined): void {
  if (visibility.rules === undefined) return;
  visibility.requireAllOf(entry);
  if (former) visibility.requireAllOf(former);
  const columns = ["digest", "ftype", "attr", TAGS_COLUMN];
  visibility.requireWriting(entry, { before: former, after: rowAt(entry, entry, entry.content), columns });
}

export function newFiles(wanted: readonly FileEntry[], former: readonly (FileEntry | undefined)[]): readonly Place[] {
  return wanted.filter(({ content }, at) => content !== undefined && !former[at]?.content);
}
