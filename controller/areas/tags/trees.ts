import { AppError } from "../../../common/errors.ts";
import { TAG_CHANGE_ATTEMPTS_MAX } from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import { Retry } from "../../store/calls/retry.ts";
import type { MoveTrees } from "./moves.ts";
import { TagStore, type TreesState } from "./store.ts";
import type { TagTrees } from "./tree.ts";

/** Computes the new trees; `undefined` if nothing changes. */
export type TreesChange = (before: TreesState) => Omit<TreesState, "revision"> | undefined;

/** The trees of all tenants. A change is written only if the trees are still as they were read. */
export class TreesChanges implements MoveTrees {
  readonly #stores: Stores;
  readonly #runtime: Pick<Runtime, "clock" | "random">;
  readonly #retry: Retry;
  /** The last pending change of each tenant: the changes of one tenant run one after another here. */
  readonly #changes = new Map<string, Promise<unknown>>();

  constructor({ stores, runtime }: { readonly stores: Stores; readonly runtime: Pick<Runtime, "clock" | "random"> }) {
    this.#stores = stores;
    this.#runtime = runtime;
    this.#retry = new Retry(runtime);
  }

  async trees(tenant: string): Promise<TagTrees> {
    return (await (await this.#store(tenant)).read()).trees;
  }

  /** Retries until a write succeeds: if two controllers change the trees concurrently, one of them must start again. */
  change(tenant: string, make: TreesChange): Promise<void> {
    return this.#after(tenant, async () => {
      const store = await this.#store(tenant);
      for (let count = 0; count < TAG_CHANGE_ATTEMPTS_MAX; count++) {
        const before = await store.read();
        const after = make(before);
        if (after === undefined || (await store.write(before, after))) return;
      }
      throw new AppError("conflict", "Others change tags all the time: nothing was changed.");
    });
  }

  /** If the trees do not name the move, writes them again, so that no earlier pending write can name it later. */
  async isBegun(tenant: string, id: string): Promise<boolean> {
    let isBegun = false;
    await this.change(tenant, (before) => {
      isBegun = before.moves.some((move) => move.id === id);
      return isBegun ? undefined : before;
    });
    return isBegun;
  }

  forget(tenant: string, id: string): Promise<void> {
    return this.change(tenant, ({ trees, moves }) =>
      moves.some((move) => move.id === id) ? { trees, moves: moves.filter((move) => move.id !== id) } : undefined,
    );
  }

  async #after(tenant: string, work: () => Promise<void>): Promise<void> {
    const mine = (this.#changes.get(tenant) ?? Promise.resolve()).then(work);
    const settled = mine.catch(() => undefined);
    this.#changes.set(tenant, settled);
    try {
      await mine;
    } finally {
      if (this.#changes.get(tenant) === settled) this.#changes.delete(tenant);
    }
  }

  async #store(tenant: string): Promise<TagStore> {
    const { kv } = await this.#stores.tenant(tenant);
    return new TagStore(kv, { retry: this.#retry, random: this.#runtime.random });
  }
}
