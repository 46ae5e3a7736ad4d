import { AppError, type ErrorCode } from "../../../common/errors.ts";
import { FILE_WORK_BEGIN_ATTEMPTS_MAX, FILE_WORKS_OPEN_MAX } from "../../../common/limits.ts";
import { isInside } from "../../../common/paths.ts";
import type { DataRule } from "../permissions/index.ts";
import { encodeJson } from "../../store/format.ts";
import {
  Journal,
  type JournalDependencies,
  type NewWork,
  type Versioned,
  type OpenWork,
} from "../../store/journal/index.ts";
import type { Space } from "./names.ts";

/** A copy, move or removal of a file, or of a folder with everything below it. KvStore: `files/open/<id>`. */
export interface OpenFileWork extends OpenWork {
  readonly tenant: string;
  readonly ospace: string;
  readonly user: string;
  readonly traceparent: string;
  readonly kind: "copy" | "move" | "remove";
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
  readonly end?: FileWorkEnd;
}

export interface FileWorkEnd {
  /** Error code of the work; absent: the work is complete. */
  readonly code?: ErrorCode;
  readonly message: string;
}

export type VersionedFileWork = Versioned<OpenFileWork>;

/**
 * Every begin rewrites this key on condition of its revision. So if two works begin at once, one of them sees the
 * other.
 */
const ORDER = "files/order";

/**
 * Journal of copies, moves and removals. Two works in one space of a tenant never run at the same time if their paths
 * overlap: one path is the other, or is inside it.
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

  async #refuseBesideOthers(work: NewWork<OpenFileWork>): Promise<void> {
    let open = 0;
    for await (const { open: other } of this.all(work.tenant)) {
      open += 1;
      if (meet(work, other))
        throw new AppError(
          "conflict",
          `${other.from} is being copied, moved or removed: try again when that has ended.`,
        );
    }
    if (open >= FILE_WORKS_OPEN_MAX)
      throw new AppError(
        "limited",
        `At most ${FILE_WORKS_OPEN_MAX} files or folders are copied, moved or removed at once.`,
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
