import { revisionOf } from "../../../../common/revisions.ts";
import { NO_DETAILS } from "./details.ts";
import { ROOT_PATH, type Organizations } from "./organizations.ts";
import { isAdministrator } from "../rights/effective-rights.ts";
import type { OrganizationRecord } from "./tree-store.ts";
import type { User, UserNode } from "../types.ts";

type Tree = Organizations<OrganizationRecord>;

/** A user as a node of the tree, without secret members of the record. */
export function userNode(user: User, tree: Tree): UserNode {
  return {
    ...user.details,
    id: user.id,
    username: user.username,
    fullname: tree.pathIn(user.parent, user.username),
    parent: tree.pathOf(user.parent) ?? ROOT_PATH,
    otype: "usr",
    isadmin: isAdministrator(user.rights),
    isactive: user.active,
    wechat: user.details.imaccount,
    grpset: user.groups,
    revision: revisionOf(user),
    nodes: [],
  };
}

/** The organisation `id` with all organisations below it, and those of `users` that are below it. */
export function organizationNode(id: string, tree: Tree, users: readonly User[]): UserNode {
  const members = byParent(users);
  const organizations = byParent([...tree.all]);
  const make = (at: string): UserNode =>
    bareNode(at, tree, [
      ...(organizations.get(at) ?? []).map((one) => make(one.id)),
      ...(members.get(at) ?? []).map((user) => userNode(user, tree)),
    ]);
  return make(id);
}

/** The nodes of each organisation, sorted by name. */
function byParent<T extends { readonly parent: string; readonly username: string }>(
  nodes: readonly T[],
): ReadonlyMap<string, readonly T[]> {
  const found = new Map<string, T[]>();
  for (const node of nodes) {
    const list = found.get(node.parent);
    if (list === undefined) found.set(node.parent, [node]);
    else list.push(node);
  }
  for (const list of found.values()) list.sort((a, b) => (a.username < b.username ? -1 : 1));
  return found;
}

/** The organisation `id` with these nodes below it. */
export function bareNode(id: string, tree: Tree, nodes: readonly UserNode[]): UserNode {
  const own = tree.get(id);
  return {
    ...(own?.details ?? NO_DETAILS),
    id,
    username: own?.username ?? ROOT_PATH,
    fullname: tree.pathOf(id) ?? ROOT_PATH,
    parent: own === undefined ? "" : (tree.pathOf(own.parent) ?? ROOT_PATH),
    otype: "org",
    isadmin: false,
    isactive: own?.active ?? true,
    wechat: own?.details.imaccount ?? "",
    grpset: [],
    revision: revisionOf(own ?? {}),
    nodes,
  };
}
