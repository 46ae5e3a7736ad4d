import { USER_TREE_DEPTH_MAX } from "../../../../common/limits.ts";

/** The organisation at the top of every tenant's tree. It is not stored, and cannot be changed, moved or deleted. */
export const ROOT_ID = "1000000000000000000";
export const ROOT_PATH = "/";

/** The place of an organisation in the tree. */
export interface PlacedOrganization {
  readonly id: string;
  /** Id of the organisation it is in. */
  readonly parent: string;
  readonly username: string;
}

/** The organisations of one tenant, as read at one time. */
export class Organizations<T extends PlacedOrganization> {
  readonly #byId: ReadonlyMap<string, T>;
  readonly #paths = new Map<string, string>([[ROOT_ID, ROOT_PATH]]);

  constructor(organizations: readonly T[]) {
    this.#byId = new Map(organizations.map((one) => [one.id, one]));
  }

  get size(): number {
    return this.#byId.size;
  }

  get all(): Iterable<T> {
    return this.#byId.values();
  }

  get(id: string): T | undefined {
    return this.#byId.get(id);
  }

  has(id: string): boolean {
    return id === ROOT_ID || this.#byId.has(id);
  }

  /** A copy in which this organisation replaces the one with the same id. */
  with(organization: T): Organizations<T> {
    return new Organizations([...this.#byId.values()].filter(({ id }) => id !== organization.id).concat(organization));
  }

  /** The organisation and those above it, from the lowest to the highest, without the root. */
  above(id: string): readonly T[] {
    const found: T[] = [];
    for (let at = this.#byId.get(id); at !== undefined; at = this.#byId.get(at.parent)) {
      found.push(at);
      if (found.length > USER_TREE_DEPTH_MAX) break;
    }
    return found;
  }

  /** Undefined for an organisation that does not exist, or is not below the root. */
  pathOf(id: string): string | undefined {
    const known = this.#paths.get(id);
    if (known !== undefined) return known;
    const names: string[] = [];
    for (let at = this.#byId.get(id); at !== undefined; at = this.#byId.get(at.parent)) {
      names.unshift(at.username);
      if (names.length > USER_TREE_DEPTH_MAX) return undefined;
      if (at.parent !== ROOT_ID) continue;
      const path = `/${names.join("/")}`;
      this.#paths.set(id, path);
      return path;
    }
    return undefined;
  }

  /** The path of a user or an organisation of that name in the organisation `parent`. */
  pathIn(parent: string, name: string): string {
    const path = this.pathOf(parent) ?? ROOT_PATH;
    return path === ROOT_PATH ? ROOT_PATH + name : `${path}/${name}`;
  }

  /** Finds an id by path, as in `/` or `/plant/night`, or by id. */
  find(text: string): string | undefined {
    if (text === "" || text === ROOT_PATH) return ROOT_ID;
    if (this.has(text)) return text;
    const wanted = `/${text.split("/").filter(Boolean).join("/")}`;
    for (const { id } of this.#byId.values()) if (this.pathOf(id) === wanted) return id;
    return undefined;
  }

  /** True if `id` is `ancestor` or below it. */
  isInside(id: string, ancestor: string): boolean {
    for (let at: string | undefined = id, steps = 0; at !== undefined; steps++) {
      if (at === ancestor) return true;
      if (steps > USER_TREE_DEPTH_MAX) return false;
      at = this.#byId.get(at)?.parent;
    }
    return false;
  }

  /** Number of organisations on the path to `id`, itself included and the root excluded: 0 for the root. */
  depthOf(id: string): number {
    const path = this.pathOf(id);
    return path === undefined || path === ROOT_PATH ? 0 : path.split("/").length - 1;
  }

  /** Levels of organisations from `id` downwards: 1 if there is none below. */
  heightOf(id: string): number {
    const own = this.depthOf(id);
    let deepest = own;
    for (const one of this.#byId.values())
      if (this.isInside(one.id, id)) deepest = Math.max(deepest, this.depthOf(one.id));
    return deepest - own + 1;
  }
}
