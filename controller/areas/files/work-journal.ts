import { AppError, type ErrorCode } from "../../../common/errors.ts";
import { FILE_WORK_BEGIN_ATTEMPTS_MAX, FILE_WORKS_OPEN_MAX } from "../../../common/limits.ts";
import { isInside } from "../../../common/paths.ts";
import type { DataRule } from "../permissions/index.ts";
import { encodeJson } from "../../store/format.ts";
import type { KvOperation } from "../../store/kv.ts";
import { txnOnce } from "../../store/once.ts";
import {
  Journal,
  type JournalDependencies,
  type NewWork,
  type Versioned,
  type WorkEnd,
  type OpenWork,
} from "../../store/journal/index.ts";
import type { HeldContent } from "./entries.ts";
import type { Space } from "./names.ts";

/**
 * A copy, move or removal of a file, or of a folder with everything below it; its recovery (`history/`); or work with a
 * kept tree of it (`versions/`). KvStore: `files/open/<id>`.
 */
export interface OpenFileWork extends OpenWork {
  readonly tenant: string;
  readonly ospace: string;
  readonly user: string;
  readonly traceparent: string;
  readonly kind: "copy" | "move" | "remove" | "recover" | KeptTreeWork;
  readonly space: Space;
  readonly from: string;
  /** The new path of the file or folder; absent for a removal. */
  readonly to?: string;
  /**
   * The folder that is processed now: `from` or a folder below it. Siblings of the folders above it may not be
   * processed yet.
   */
  readonly at: string;
  readonly startedMs: number;
  /**
   * The rules on the class of files that the caller had at the start. They apply until the end of the work, even if the
   * caller's rights change. Absent: no rule restricts files.
   */
  readonly rules?: readonly DataRule[];
  /**
   * True if the caller is no administrator: nothing may be copied or moved to a place where it would hide a system
   * file.
   */
  readonly hidesNothing?: true;
  /**
   * Contents that the last batch of a copy or move replaces, with the paths of their files. They are stored before the
   * files are written, and released afterwards.
   */
  readonly replaced?: readonly ReplacedContent[];
  /** Key of the removal whose files `recover` restores; absent for other work. */
  readonly removal?: string;
  /** Progress of work with a kept tree; absent for other work. */
  readonly kept?: KeptTreeProgress;
  readonly end?: FileWorkEnd;
}

export interface ReplacedContent extends HeldContent {
  readonly fullname: string;
}

/** `keep` keeps the tree as a version or snapshot, `restore` makes the tree like it, `release` removes it. */
export type KeptTreeWork = "keep" | "restore" | "release";

/** How far work with a kept tree has come. See `versions/work.ts`. */
export interface KeptTreeProgress {
  /** KvStore key of the record of the kept tree. */
  readonly key: string;
  /** Name of the version; absent for a snapshot. */
  readonly name?: string;
  /** List of the tree as it was read at the beginning. Absent: it was not read yet. */
  readonly list?: string;
  /** Entries of that list, and bytes of their contents. */
  readonly size?: { readonly entries: number; readonly bytes: number };
  /** Number of files of other content than before. */
  readonly changed?: number;
  /** True: the record names `list`. */
  readonly isKept?: true;
  /** A list that is no longer needed. Its marks, except those that `list` has too, are removed; then the list. */
  readonly retiring?: Retiring;
  /** Why the work failed. It ends when nothing of it is left. */
  readonly failed?: { readonly code: ErrorCode; readonly message: string };
}

export interface Retiring {
  readonly list: string;
  /** The list whose marks stay. */
  readonly except?: string;
  /** True: its marks are removed, and the list is being removed. */
  readonly isUnmarked?: true;
}

export interface FileWorkEnd extends WorkEnd {
  /** Number of files of other content than before; only for work that keeps or restores a tree. */
  readonly changed?: number;
}

export type VersionedFileWork = Versioned<OpenFileWork>;

/**
 * Every begin rewrites this key on condition of its revision. So if two works begin at once, one of them sees the
 * other.
 */
export const ORDER = "files/order";

/**
 * Journal of copies, moves, removals and work with kept trees. Two works in one space of a tenant never run at the same
 * time if their paths overlap: one path is the other, or is inside it.
 */
export class FileWorkJournal extends Journal<OpenFileWork> {
  readonly #stores: JournalDependencies["stores"];

  constructor(dependencies: JournalDependencies) {
    super(dependencies, { prefix: "files/open/", tenantOf: ({ tenant }) => tenant });
    this.#stores = dependencies.stores;
  }

  /**
   * Begins the work. `AppError("conflict")` if other work concerns the same paths, or if too many works begin at once.
   * `AppError("limited")` if `FILE_WORKS_OPEN_MAX` works are open.
   */
  async beginAlone(work: NewWork<OpenFileWork>): Promise<VersionedFileWork> {
    const { kv } = await this.#stores.tenant(work.tenant);
    for (let attempt = 0; attempt < FILE_WORK_BEGIN_ATTEMPTS_MAX; attempt++) {
      const revision = (await kv.get(ORDER))?.revision ?? 0;
      await this.#refuseBesideOthers(work);
      const order = { kind: "put", key: ORDER, value: encodeJson(work.id) } as const;
      const begun = await this.beginWithin(work, { if: [{ key: ORDER, revision }], then: [order] });
      if (begun) return begun;
    }
    throw new AppError("conflict", "Too much is copied, moved and removed at once: try again.");
  }

  /**
   * Like `step`, in one transaction with `beside`. `undefined` if another writer changed, decided or ended the work
   * after `held`; then nothing was written.
   */
  async stepBeside(
    held: VersionedFileWork,
    changes: Partial<NewWork<OpenFileWork>>,
    beside: readonly KvOperation[],
  ): Promise<VersionedFileWork | undefined> {
    const { key, value, revision, open } = this.stepWithin(held, changes);
    const { kv } = await this.#stores.tenant(open.tenant);
    const request = { if: [{ key, revision }], then: [{ kind: "put", key, value } as const, ...beside] };
    const written = await txnOnce(kv, request);
    return written.ok ? { open, revision: written.revision } : undefined;
  }

  async #refuseBesideOthers(work: NewWork<OpenFileWork>): Promise<void> {
    let open = 0;
    for await (const { open: other } of this.all(work.tenant)) {
      open += 1;
      if (meet(work, other))
        throw new AppError(
          "conflict",
          `${other.from} is being copied, moved, removed, kept or restored: try again when that has ended.`,
        );
    }
    if (open >= FILE_WORKS_OPEN_MAX)
      throw new AppError(
        "limited",
        `At most ${FILE_WORKS_OPEN_MAX} files or folders are copied, moved, removed, kept or restored at once.`,
      );
  }
}

function meet(one: NewWork<OpenFileWork>, other: OpenFileWork): boolean {
  const paths = ({ from, to }: NewWork<OpenFileWork>): readonly string[] => (to === undefined ? [from] : [from, to]);
  return (
    one.space === other.space &&
    paths(one).some((path) => paths(other).some((second) => isInside(path, second) || isInside(second, path)))
  );
}
