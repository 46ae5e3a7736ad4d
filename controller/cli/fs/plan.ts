import { AppError } from "../../../common/errors.ts";
import { keyOf, parentKey, type LeftOut, type Tree, type TreeEntry } from "./tree.ts";

/** Entries that the last sync saw to be the same on both sides. */
export interface Base {
  readonly files: ReadonlyMap<string, BaseFile>;
  readonly folders: ReadonlySet<string>;
  /** SHA-256 of contents that this machine has sent up, by key, where the answer was lost: they may have been stored. */
  readonly sent: ReadonlyMap<string, string>;
}

export interface BaseFile {
  /** SHA-256 of the content. */
  readonly digest: string;
  /** Revision on the controller. */
  readonly revision: string;
  /** Version of the local file; empty if that does not identify its content. */
  readonly local: string;
}

export interface PlanOptions {
  readonly source: Tree;
  readonly target: Tree;
  /** Names of the two sides, for messages. */
  readonly sourceName: string;
  readonly targetName: string;
  readonly base: Base;
  /** SHA-256 of contents of the target that this machine wrote itself, by key: they are no changes of others. */
  readonly own: ReadonlyMap<string, string>;
  /** True if the source wins wherever both sides differ. */
  readonly isForced: boolean;
  /** True if files that the source has no more are removed. */
  readonly isDeleting: boolean;
  readonly isExcluded: (key: string) => boolean;
  /** The reason why the target cannot store a path. */
  readonly refusal: (path: string) => string | undefined;
}

/** One change of the target. */
export type Action =
  | { readonly kind: "folder"; readonly key: string; readonly path: string }
  | {
      readonly kind: "create" | "replace";
      readonly key: string;
      readonly path: string;
      readonly from: TreeEntry;
      /** The file that is replaced. */
      readonly over?: TreeEntry;
    }
  | { readonly kind: "remove" | "rmdir"; readonly key: string; readonly path: string; readonly over: TreeEntry };

export interface Plan {
  /** Sorted by path. */
  readonly actions: readonly Action[];
  /** Entries that are the same on both sides, by key. */
  readonly same: ReadonlyMap<string, readonly [source: TreeEntry, target: TreeEntry]>;
  readonly conflicts: readonly LeftOut[];
  readonly leftOut: readonly LeftOut[];
  /** Files and folders that only the target has, and keeps. */
  readonly kept: number;
}

/** Keys of files whose contents are compared, so their digests are needed. */
export function comparedKeys({
  source,
  target,
  base,
}: Pick<PlanOptions, "source" | "target" | "base">): readonly string[] {
  return [...target.entries].flatMap(([key, { kind }]) => {
    const other = source.entries.get(key);
    if (kind !== "file" || source.isLeftOut(key) || target.isLeftOut(key)) return [];
    return other?.kind === "file" || (other === undefined && base.files.has(key)) ? [key] : [];
  });
}

/** Decides what a sync does. The digests of `comparedKeys` are known. `AppError("conflict")` if it would remove all. */
export function planOf(options: PlanOptions): Plan {
  const { source, target, isExcluded } = options;
  const planning = new Planning(options);
  for (const key of [...new Set([...source.entries.keys(), ...target.entries.keys()])].sort()) {
    if (isExcluded(key) || source.isLeftOut(key) || target.isLeftOut(key)) continue;
    planning.decide(key, source.entries.get(key), target.entries.get(key));
  }
  return planning.plan();
}

class Planning {
  readonly #options: PlanOptions;
  readonly #actions: Action[] = [];
  readonly #same = new Map<string, readonly [TreeEntry, TreeEntry]>();
  readonly #conflicts: LeftOut[] = [];
  readonly #refused: LeftOut[] = [];
  /** Keys whose entries below are not decided: a conflict or a refusal concerns them all. */
  readonly #closed = new Set<string>();
  /** Folders of the target in which something stays. */
  readonly #staying = new Set<string>();
  readonly #goneFolders: TreeEntry[] = [];
  #kept = 0;

  constructor(options: PlanOptions) {
    this.#options = options;
  }

  decide(key: string, from: TreeEntry | undefined, over: TreeEntry | undefined): void {
    if (this.#isClosed(key)) return this.#stay(key);
    if (from === undefined) return over && this.#decideExtra(key, over);
    this.#stay(key);
    if (over === undefined) return this.#decideMissing(key, from);
    if (from.kind !== over.kind) {
      this.#closed.add(key);
      return this.#conflict(from.path, `is a ${from.kind} in ${this.#source} and a ${over.kind} in ${this.#target}`);
    }
    if (from.kind === "folder" || from.digest === over.digest) return void this.#same.set(key, [from, over]);
    this.#decideDifferent(key, from, over);
  }

  plan(): Plan {
    const { source, target, isForced } = this.#options;
    for (const { path } of target.leftOut) this.#stay(keyOf(path));
    for (const over of this.#goneFolders.toReversed()) this.#decideGoneFolder(over);
    const isRemoving = this.#actions.some(({ kind }) => kind === "remove");
    if (isRemoving && !isForced && ![...source.entries.values()].some(({ kind }) => kind === "file"))
      throw new AppError(
        "conflict",
        `${this.#source} has no file, so --delete would remove all of ${this.#target}. Add --force if that is meant.`,
      );
    const leftOut = [...source.leftOut, ...target.leftOut, ...this.#refused];
    return { actions: this.#actions, same: this.#same, conflicts: this.#conflicts, leftOut, kept: this.#kept };
  }

  #decideMissing(key: string, from: TreeEntry): void {
    const { base, isForced, refusal, target } = this.#options;
    const path = target.pathOf(key);
    const wasThere = from.kind === "folder" ? base.folders.has(key) : base.files.has(key);
    const why = refusal(path);
    if (from.kind === "folder" && (why !== undefined || (wasThere && !isForced))) this.#closed.add(key);
    if (why !== undefined) this.#refused.push({ path: from.path, why });
    else if (wasThere && !isForced) this.#conflict(from.path, `was removed from ${this.#target} since the last sync`);
    else if (from.kind === "folder") this.#actions.push({ kind: "folder", key, path });
    else this.#actions.push({ kind: "create", key, path, from });
  }

  #decideDifferent(key: string, from: TreeEntry, over: TreeEntry): void {
    const before = this.#options.base.files.get(key);
    const { isForced, own } = this.#options;
    const isOwn = over.digest !== undefined && over.digest === own.get(key);
    if (isForced || isOwn || (before && this.#isAsBefore(over, before)))
      return void this.#actions.push({ kind: "replace", key, path: over.path, from, over });
    if (before === undefined) return this.#conflict(from.path, "differs, and no sync has seen it before");
    const isChanged = !this.#isAsBefore(from, before);
    this.#conflict(
      from.path,
      isChanged ? "was changed on both sides" : `was changed in ${this.#target}, not in ${this.#source}`,
    );
  }

  #decideExtra(key: string, over: TreeEntry): void {
    const { base, isForced, isDeleting } = this.#options;
    if (over.kind === "folder" && isDeleting && (isForced || base.folders.has(key)))
      return void this.#goneFolders.push(over);
    const before = base.files.get(key);
    if (over.kind === "file" && isDeleting && (isForced || (before && this.#isAsBefore(over, before))))
      return void this.#actions.push({ kind: "remove", key, path: over.path, over });
    this.#stay(key);
    if (over.kind === "file" && isDeleting && before !== undefined)
      return this.#conflict(over.path, `was removed from ${this.#source} and changed in ${this.#target}`);
    this.#kept++;
  }

  #decideGoneFolder(over: TreeEntry): void {
    const key = keyOf(over.path);
    if (this.#staying.has(key)) this.#kept++;
    else this.#actions.push({ kind: "rmdir", key, path: over.path, over });
  }

  /** True if the entry has the content that the last sync saw. */
  #isAsBefore({ version, digest }: TreeEntry, before: BaseFile): boolean {
    return digest === before.digest || version === before.revision;
  }

  #conflict(path: string, why: string): void {
    this.#conflicts.push({ path, why });
  }

  #stay(key: string): void {
    for (let at = key; at !== ""; at = parentKey(at)) this.#staying.add(at);
  }

  #isClosed(key: string): boolean {
    for (let at = key; at !== ""; at = parentKey(at)) if (this.#closed.has(at)) return true;
    return false;
  }

  get #source(): string {
    return this.#options.sourceName;
  }

  get #target(): string {
    return this.#options.targetName;
  }
}
