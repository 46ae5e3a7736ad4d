import type { Objects, VisibleRecords } from "../../objects/index.ts";
import { classAccess, decidingRules, type Principal } from "../../permissions/index.ts";
import { ROOT_ID } from "./organizations.ts";
import type { UserNode } from "../types.ts";

/** Path of the class of users, relative to the tenant's ospace. */
export const USER_CLASS_PATH = "/ldap";

/** Id of a node as an object. */
export function objectIdOf(id: string): string {
  return `ldap:${id}`;
}

/**
 * The nodes that a principal may see: if rules apply to the class of users, only the nodes and members that MQL would
 * show.
 */
export interface NodeFilter {
  sees(node: UserNode): boolean;
  /** True if the principal sees the node and its name. */
  seesName(node: UserNode): boolean;
  /** True if `seesName` is true for every user, also for those created later. */
  readonly seesAllNames: boolean;
  /**
   * The visible part of the node and of all nodes below it; undefined if there is none. A node that is shown only
   * because it contains a visible one has its place and no other member.
   */
  shown(node: UserNode): UserNode | undefined;
}

/** The filter for the principal. If no rule applies to the class of users, the permission alone decides. */
export async function nodeFilter(
  principal: Principal,
  objects: Pick<Objects, "visible"> | undefined,
): Promise<NodeFilter> {
  const path = principal.ospace + USER_CLASS_PATH;
  if (objects === undefined || decidingRules(principal, path).length === 0) return WHOLE;
  const { parts } = classAccess(principal, path);
  const seesAllNames = parts.some(({ where, hidden }) => where === undefined && !hidden.has("username"));
  return filterBy(await objects.visible.records(principal, path), seesAllNames);
}

const WHOLE: NodeFilter = { sees: () => true, shown: (node) => node, seesName: () => true, seesAllNames: true };

function filterBy(filter: VisibleRecords, seesAllNames: boolean): NodeFilter {
  const objectOf = (node: UserNode): UserNode => ({ ...node, id: objectIdOf(node.id) });
  // The root is not an object, so no rule applies to it.
  const sees = (node: UserNode): boolean => node.id === ROOT_ID || filter.sees(objectOf(node));
  const shown = (node: UserNode): UserNode | undefined => {
    const nodes = node.nodes.flatMap((one) => shown(one) ?? []);
    if (sees(node)) return { ...filter.shown(objectOf(node)), id: node.id, nodes };
    return nodes.length === 0 ? undefined : wayTo(node, nodes);
  };
  const seesName = (node: UserNode): boolean => sees(node) && "username" in filter.shown(objectOf(node));
  return { sees, shown, seesName, seesAllNames };
}

function wayTo({ id, username, fullname, parent, otype }: UserNode, nodes: readonly UserNode[]): UserNode {
  return { id, username, fullname, parent, otype, nodes } as UserNode;
}
