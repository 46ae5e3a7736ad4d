import { AppError } from "../../../common/errors.ts";
import { TAG_CHANGE_ATTEMPTS_MAX } from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import { Retry } from "../../store/retry.ts";
import type { MoveTrees } from "./moves.ts";
import { TagStore, type TreesState } from "./store.ts";
import type { TagTrees } from "./tree.ts";

/** What a change makes of the trees; `undefined` where there is nothing to change. */
export type TreesChange = (before: TreesState) => Omit<TreesState, "revision"> | undefined;

/** Trees of all tenants, changed under the condition that they are as they were read. */
export class TreesChanges implements MoveTrees {
  readonly #stores: Stores;
  readonly #runtime: Pick<Runtime, "clock" | "random">;
  readonly #retry: Retry;
  /** The last change under way of each tenant: its changes follow each other here. */
  readonly #changes = new Map<string, Promise<unknown>>();

  constructor({ stores, runtime }: { readonly stores: Stores; readonly runtime: Pick<Runtime, "clock" | "random"> }) {
    this.#stores = stores;
    this.#runtime = runtime;
    this.#retry = new Retry(runtime);
  }

  async trees(tenant: string): Promise<TagTrees> {
    return (await (await this.#store(tenant)).read()).trees;
  }

  /** Attempts follow each other until one answers: of two controllers that change trees one has to begin anew. */
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

  /** Writes trees that do not name it once more, so that no write of before can name it later. */
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
