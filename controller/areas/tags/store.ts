import { AppError } from "../../../common/errors.ts";
import { TAG_TREES_MAX_BYTES } from "../../../common/limits.ts";
import type { Random } from "../../../common/time.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import type { KvStore } from "../../store/kv.ts";
import { putOnce } from "../../store/once.ts";
import type { Retry } from "../../store/calls/retry.ts";
import { TagTrees, type MovingTag, type StoredTrees } from "./tree.ts";

const TREES = "tags/trees";
const WRITE_BYTES = 12;

/** `write` is new with every write, so that a writer recognizes its own. */
interface Stored {
  readonly write: string;
  readonly trees: StoredTrees;
  /** Absent: no open moves. */
  readonly moves?: readonly MovingTag[];
}

/** The trees as read from the store. Revision 0: there are none. */
export interface TreesState {
  readonly revision: number;
  readonly trees: TagTrees;
  /** Changes of the trees that are not yet applied to all objects. */
  readonly moves: readonly MovingTag[];
}

/** The trees of a tenant in its KvStore. They are one value, so that a tag changes in all domains at once. */
export class TagStore {
  readonly #kv: KvStore;
  readonly #retry: Retry;
  readonly #random: Random;

  constructor(kv: KvStore, { retry, random }: { readonly retry: Retry; readonly random: Random }) {
    this.#kv = kv;
    this.#retry = retry;
    this.#random = random;
  }

  async read(): Promise<TreesState> {
    const entry = await this.#retry.run(() => this.#kv.get(TREES));
    const { trees, moves = [] } = entry ? decodeStored<Stored>(entry.value) : { trees: [] };
    return { revision: entry?.revision ?? 0, trees: TagTrees.of(trees), moves };
  }

  /** Returns false if the trees have changed since they were read. */
  async write({ revision }: TreesState, { trees, moves }: Omit<TreesState, "revision">): Promise<boolean> {
    const write = Buffer.from(this.#random.bytes(WRITE_BYTES)).toString("base64url");
    const value = encodeJson({ write, trees: trees.stored(), ...(moves.length > 0 && { moves }) } satisfies Stored);
    if (value.length > TAG_TREES_MAX_BYTES)
      throw new AppError("too_large", `All tags of a tenant have at most ${TAG_TREES_MAX_BYTES} bytes as JSON.`, {
        details: { limit: "TAG_TREES_MAX_BYTES" },
      });
    const { ok } = await putOnce(this.#kv, { key: TREES, value, ifRevision: revision }, (put) => this.#retry.run(put));
    return ok;
  }
}
