import { AppError } from "../../../common/errors.ts";
import { ORGANIZATIONS_PER_TENANT_MAX, USER_TREE_DEPTH_MAX } from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import { encodeJson } from "../../store/format.ts";
import type { KvOperation } from "../../store/kv.ts";
import type { Principal } from "../permissions/index.ts";
import { NO_DETAILS } from "./details.ts";
import { checkName, deletion, newNodeId, parentIn, requireFree, tooMany, unknownNode } from "./places.ts";
import {
  memberKey,
  membersOf,
  organizationKey,
  type OrganizationRecord,
  type TreeStore,
  type TreeView,
} from "./tree-store.ts";
import type { Details, NewOrganization, NodeChange } from "./types.ts";

/** Changes of organisations, whose caller may make them. */
export class OrganizationChanges {
  readonly #runtime: Pick<Runtime, "clock" | "random">;
  readonly #tree: TreeStore;

  constructor(runtime: Pick<Runtime, "clock" | "random">, tree: TreeStore) {
    this.#runtime = runtime;
    this.#tree = tree;
  }

  /** Answers the id. */
  async create(principal: Principal, wanted: NewOrganization): Promise<string> {
    const { username } = wanted;
    checkName(username);
    const nowMs = this.#runtime.clock.nowMs();
    const id = newNodeId(this.#runtime.random);
    return this.#tree.restructure(principal.tenant, async (tree) => {
      const parent = parentIn(tree, wanted.parent);
      if (tree.organizations.size >= ORGANIZATIONS_PER_TENANT_MAX)
        throw tooMany("organisations", "ORGANIZATIONS_PER_TENANT_MAX", ORGANIZATIONS_PER_TENANT_MAX);
      requireDepth(tree.organizations.depthOf(parent) + 1);
      await requireFree(tree, memberKey(parent, username), `There is already a ${username} there.`);
      const record: OrganizationRecord = {
        id,
        parent,
        username,
        details: { ...NO_DETAILS, ...wanted.details },
        active: wanted.active ?? true,
        createdMs: nowMs,
        changedMs: nowMs,
      };
      return { if: [], then: placingOrganization(record), users: 0, answer: id };
    });
  }

  /** Answers warnings. */
  async change(principal: Principal, id: string, change: NodeChange): Promise<readonly string[]> {
    const { details, active } = change;
    await this.#tree.restructure(principal.tenant, async ({ organizations }) => {
      const record = organizations.get(id);
      if (record === undefined) throw unknownNode(id);
      const changedMs = this.#runtime.clock.nowMs();
      const merged: Details = { ...record.details, ...details };
      const changed = { ...record, details: merged, active: active ?? record.active, changedMs };
      return { if: [], then: [putOrganization(changed)], users: 0, answer: undefined };
    });
    return ignoredMembers(change);
  }

  async remove(principal: Principal, id: string): Promise<void> {
    await this.#tree.restructure(principal.tenant, async ({ kv, organizations }) => {
      const record = organizations.get(id);
      if (record === undefined) throw unknownNode(id);
      if ((await kv.list(membersOf(id), { limit: 1 })).entries.length > 0)
        throw new AppError("conflict", `The organisation ${record.username} is not empty.`);
      const keys = [organizationKey(id), memberKey(record.parent, record.username)];
      return { if: [], then: keys.map(deletion), users: 0, answer: undefined };
    });
  }

  /** With all below it. Answers the id. */
  move(principal: Principal, id: string, to: string): Promise<string> {
    return this.#tree.restructure(principal.tenant, (tree) => moveOrganization(tree, id, to));
  }
}

/** Clients send organisations with the members of users: those that would do something to a user are named in a warning. */
export function ignoredMembers({ password = "", groups = [], isAdmin = false }: NodeChange): readonly string[] {
  const ignored = [
    ...(password === "" ? [] : ["passwd"]),
    ...(groups.length === 0 ? [] : ["grpset"]),
    ...(isAdmin ? ["isadmin"] : []),
  ];
  if (ignored.length === 0) return [];
  return [`An organisation has no password, groups or rights: ${ignored.join(", ")} were ignored.`];
}

async function moveOrganization(tree: TreeView, id: string, to: string) {
  const { organizations } = tree;
  const record = organizations.get(id);
  if (record === undefined) throw unknownNode(id);
  const parent = parentIn(tree, to);
  if (organizations.isInside(parent, id))
    throw new AppError("conflict", `${record.username} cannot be moved into itself.`);
  if (parent === record.parent) return { if: [], then: [], users: 0, answer: id };
  requireDepth(organizations.depthOf(parent) + organizations.heightOf(id));
  await requireFree(tree, memberKey(parent, record.username), `There is already a ${record.username} there.`);
  const leave = deletion(memberKey(record.parent, record.username));
  return { if: [], then: [leave, ...placingOrganization({ ...record, parent })], users: 0, answer: id };
}

function requireDepth(depth: number): void {
  if (depth <= USER_TREE_DEPTH_MAX) return;
  throw new AppError("too_large", `Organisations lie at most ${String(USER_TREE_DEPTH_MAX)} below one another.`, {
    details: { limit: "USER_TREE_DEPTH_MAX" },
  });
}

function placingOrganization(record: OrganizationRecord): readonly KvOperation[] {
  const { id, parent, username } = record;
  return [putOrganization(record), { kind: "put", key: memberKey(parent, username), value: encodeJson({ id }) }];
}

function putOrganization(record: OrganizationRecord): KvOperation {
  return { kind: "put", key: organizationKey(record.id), value: encodeJson(record) };
}
