import { AppError } from "../../../common/errors.ts";
import { TAG_CHANGE_ATTEMPTS_MAX } from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import { Retry } from "../../store/retry.ts";
import { requirePermission, type Principal } from "../permissions/index.ts";
import { checkDomain, tagPath } from "./paths.ts";
import { TagStore } from "./store.ts";
import type { TagNode, TagTrees } from "./tree.ts";

/** A tag of a domain, as the caller writes it. */
export interface TagName {
  readonly domain: string;
  readonly path: string;
}

/**
 * Trees of tags, one for each domain. Every read asks the store, so that a change holds for all controllers as soon as
 * it is answered.
 */
export class TagService {
  readonly #stores: Stores;
  readonly #runtime: Runtime;
  readonly #retry: Retry;
  /** The last change under way of each tenant: its changes follow each other here. */
  readonly #changes = new Map<string, Promise<unknown>>();

  constructor({ stores, runtime }: { readonly stores: Stores; readonly runtime: Runtime }) {
    this.#stores = stores;
    this.#runtime = runtime;
    this.#retry = new Retry({ clock: runtime.clock, random: runtime.random });
  }

  /** Empty for a domain or a tag that is not there. `below`: only what lies below that tag. */
  async tree(principal: Principal, domain: string, below = ""): Promise<TagNode> {
    requirePermission(principal, "tags:read");
    checkDomain(domain);
    const root = below === "" || below === "/" ? undefined : tagPath(below);
    const { trees } = await (await this.#store(principal.tenant)).read();
    return trees.view(domain, root);
  }

  /** With all tags above it. A tag that is there already stays. */
  async add(principal: Principal, { domain, path }: TagName): Promise<void> {
    requirePermission(principal, "tags:write");
    checkDomain(domain);
    const added = tagPath(path);
    await this.#change(principal.tenant, (trees) => (trees.has(domain, added) ? trees : trees.with(domain, [added])));
  }

  /** The tag and all below it. `AppError("not_found")`. */
  async remove(principal: Principal, { domain, path }: TagName): Promise<void> {
    requirePermission(principal, "tags:write");
    checkDomain(domain);
    const removed = tagPath(path);
    await this.#change(principal.tenant, (trees) => trees.without(domain, removed));
  }

  /**
   * The tag and all below it lie at the whole new path `to`, in every domain that shows the tag. `AppError("conflict")`
   * when this domain has the new path.
   */
  async move(principal: Principal, { domain, path }: TagName, to: string): Promise<void> {
    requirePermission(principal, "tags:write");
    checkDomain(domain);
    const move = { from: tagPath(path), to: tagPath(to) };
    await this.#change(principal.tenant, (trees) => trees.moved(domain, move));
  }

  /** Attempts follow each other until one answers: of two controllers that change trees one has to begin anew. */
  #change(tenant: string, make: (trees: TagTrees) => TagTrees): Promise<void> {
    return this.#after(tenant, async () => {
      const store = await this.#store(tenant);
      for (let count = 0; count < TAG_CHANGE_ATTEMPTS_MAX; count++) {
        const before = await store.read();
        const trees = make(before.trees);
        if (trees === before.trees || (await store.write(before, trees))) return;
      }
      throw new AppError("conflict", "Others change tags all the time: nothing was changed.");
    });
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
