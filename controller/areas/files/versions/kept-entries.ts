import { AppError } from "../../../../common/errors.ts";
import type { Stores } from "../../../store/engine.ts";
import type { Principal } from "../../permissions/index.ts";
import type { FileEntry } from "../entries.ts";
import { batches } from "./batches.ts";
import { fileEntryOf } from "./kept-entry.ts";
import { EntryLists, ListRemoved } from "./lists.ts";
import type { KeptTree } from "./records.ts";

/** Entries of kept trees, as they would be stored in their tree. */
export class KeptEntries {
  readonly #stores: Stores;

  constructor(stores: Stores) {
    this.#stores = stores;
  }

  /** The root of the tree; `undefined` if the tree was replaced or removed meanwhile. */
  async root(principal: Principal, tree: KeptTree): Promise<FileEntry | undefined> {
    return this.find(principal, tree, tree.fullname).catch((error: unknown) => {
      if (error instanceof ListRemoved) return undefined;
      throw error;
    });
  }

  /** The entry at this path, which is the root or below it. `ListRemoved` if the tree was replaced meanwhile. */
  async find(principal: Principal, tree: KeptTree, fullname: string): Promise<FileEntry | undefined> {
    const kept = await (await this.#lists(principal)).find(tree.list, fullname.slice(tree.fullname.length));
    return kept && fileEntryOf(principal, tree, kept);
  }

  /** All entries, in groups. `AppError("conflict")` if the tree is replaced meanwhile. */
  async *all(principal: Principal, tree: KeptTree, signal?: AbortSignal): AsyncGenerator<readonly FileEntry[]> {
    const lists = await this.#lists(principal);
    try {
      for await (const some of batches(lists.read(tree.list, signal)))
        yield some.map((one) => fileEntryOf(principal, tree, one));
    } catch (error) {
      if (!(error instanceof ListRemoved)) throw error;
      throw new AppError("conflict", `What was kept of ${tree.fullname} is being replaced: try again.`);
    }
  }

  async #lists({ tenant }: Principal): Promise<EntryLists> {
    return new EntryLists((await this.#stores.tenant(tenant)).blobs);
  }
}
