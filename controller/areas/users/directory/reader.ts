import { AppError } from "../../../../common/errors.ts";
import { USERS_READ_SINGLY_MAX } from "../../../../common/limits.ts";
import { nearestName } from "../../../../common/text/nearest.ts";
import type { Objects } from "../../objects/index.ts";
import { requireOneOf, requirePermission, type Principal } from "../../permissions/index.ts";
import { bareNode, organizationNode, userNode } from "./nodes.ts";
import { ROOT_ID } from "./organizations.ts";
import { isName, noNode, shown, unknownNode } from "./places.ts";
import type { StoredUser, UserStore } from "../store.ts";
import type { TreeStore } from "./tree-store.ts";
import type { User, UserNode } from "../types.ts";
import { nodeFilter } from "./visible.ts";

export interface DirectoryReaderDependencies {
  readonly users: UserStore;
  readonly tree: TreeStore;
  /** Needed to apply rules about users; absent: such rules are not applied. */
  readonly objects?: Pick<Objects, "visible"> | undefined;
}

type Located = Pick<UserNode, "id" | "otype" | "username">;

/** The tree of users and organisations, limited to what the caller may see. */
export class DirectoryReader {
  readonly #users: UserStore;
  readonly #tree: TreeStore;
  readonly #objects: DirectoryReaderDependencies["objects"];

  constructor({ users, tree, objects }: DirectoryReaderDependencies) {
    this.#users = users;
    this.#tree = tree;
    this.#objects = objects;
  }

  /**
   * The node at that path with all nodes below it, limited to those that the caller may see. `AppError("not_found")` if
   * the caller sees no such node.
   */
  async subtree(principal: Principal, fullname: string): Promise<UserNode> {
    requirePermission(principal, "users:read");
    const { shown } = await nodeFilter(principal, this.#objects);
    const node = shown(await this.#subtree(principal, fullname));
    if (node === undefined) throw noNode(fullname);
    return node;
  }

  async #subtree({ tenant }: Principal, fullname: string): Promise<UserNode> {
    const tree = await this.#tree.organizations(tenant);
    const users: User[] = [];
    for await (const page of this.#users.pages(tenant)) users.push(...page.map(({ record }) => record));
    const id = tree.find(fullname);
    if (id !== undefined) return organizationNode(id, tree, users);
    const user = users.find(({ parent, username }) => tree.pathIn(parent, username) === fullname);
    if (user === undefined) throw noNode(fullname);
    return userNode(user, tree);
  }

  /** The caller, or a user whom the caller may see; `undefined` if there is none. */
  async find(principal: Principal, username: string): Promise<User | undefined> {
    requirePermission(principal, "users:read");
    const stored = isName(username) ? await this.#users.get(principal.tenant, username) : undefined;
    if (stored === undefined) return undefined;
    const { record } = stored;
    const { seesName } = await nodeFilter(principal, this.#objects);
    const isSeen =
      username === principal.user || seesName(userNode(record, await this.#tree.organizations(principal.tenant)));
    return isSeen ? shown(record) : undefined;
  }

  /**
   * Answers a test for user names: true for users whom the caller may see. It is true for every name if no rule hides
   * users.
   */
  async seenNames(principal: Principal): Promise<(username: string) => boolean> {
    requireOneOf(principal, ["users:read", "perms:read", "perms:write"]);
    const { seesName, seesAllNames } = await nodeFilter(principal, this.#objects);
    if (seesAllNames) return () => true;
    const tree = await this.#tree.organizations(principal.tenant);
    const names = new Set<string>();
    for await (const page of this.#users.pages(principal.tenant))
      for (const { record } of page) if (seesName(userNode(record, tree))) names.add(record.username);
    return (username) => names.has(username);
  }

  /** The subset of `names` that belong to users whom the caller may see. */
  async knownNames(principal: Principal, names: ReadonlySet<string>): Promise<ReadonlySet<string>> {
    requireOneOf(principal, ["users:read", "perms:read", "perms:write"]);
    const { tenant } = principal;
    const { seesName } = await nodeFilter(principal, this.#objects);
    const tree = await this.#tree.organizations(tenant);
    const known = new Set<string>();
    const take = ({ record }: StoredUser): void => {
      if (names.has(record.username) && seesName(userNode(record, tree))) known.add(record.username);
    };
    if (names.size > USERS_READ_SINGLY_MAX) {
      for await (const page of this.#users.pages(tenant)) page.forEach(take);
      return known;
    }
    for (const name of names) {
      const stored = isName(name) ? await this.#users.get(tenant, name) : undefined;
      if (stored !== undefined) take(stored);
    }
    return known;
  }

  /** The most similar name of a user whom the caller may see; undefined if none is similar. Reads all users. */
  async likeName(principal: Principal, name: string): Promise<string | undefined> {
    const sees = await this.seenNames(principal);
    let like: string | undefined;
    for await (const page of this.#users.pages(principal.tenant)) {
      const names = page.map(({ record }) => record.username).filter(sees);
      like = nearestName(name, [...(like === undefined ? [] : [like]), ...names]);
    }
    return like;
  }

  /** The caller's own node, without a permission; undefined for the platform itself. */
  async self(principal: Principal): Promise<UserNode | undefined> {
    const stored = await this.#users.get(principal.tenant, principal.user);
    return stored && userNode(stored.record, await this.#tree.organizations(principal.tenant));
  }

  /** Every node except the root, page by page. Without the permission, only the caller's own node. */
  async *nodes(principal: Principal): AsyncGenerator<readonly UserNode[]> {
    const { tenant } = principal;
    try {
      requirePermission(principal, "users:read");
    } catch {
      const self = await this.self(principal);
      if (self !== undefined) yield [self];
      return;
    }
    const tree = await this.#tree.organizations(tenant);
    yield [...tree.all].map(({ id }) => bareNode(id, tree, []));
    for await (const page of this.#users.pages(tenant)) yield page.map(({ record }) => userNode(record, tree));
  }

  /** The node with that id; `AppError("not_found")` if there is none that the caller may see. */
  async located(principal: Principal, id: string): Promise<Omit<Located, "id">> {
    requireOneOf(principal, ["users:read", "users:write"]);
    if (id === ROOT_ID) throw new AppError("invalid", "The root of the tree is not changed.");
    const found = /^\d{19,20}$/.test(id) ? await this.#tree.locate(principal.tenant, id) : undefined;
    if (found === undefined) throw unknownNode(id);
    const { sees } = await nodeFilter(principal, this.#objects);
    if (!sees(await this.#nodeOf(principal.tenant, { id, ...found }))) throw unknownNode(id);
    return found;
  }

  async #nodeOf(tenant: string, { id, otype, username }: Located): Promise<UserNode> {
    const tree = await this.#tree.organizations(tenant);
    if (otype === "org") return bareNode(id, tree, []);
    return userNode((await required(this.#users, tenant, username)).record, tree);
  }
}

/** The stored user; `AppError("not_found")` if there is none. */
export async function required(users: UserStore, tenant: string, username: string): Promise<StoredUser> {
  const stored = isName(username) ? await users.get(tenant, username) : undefined;
  if (stored === undefined) throw new AppError("not_found", `There is no user ${username}.`);
  return stored;
}
