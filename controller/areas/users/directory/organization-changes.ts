import { AppError } from "../../../../common/errors.ts";
import { ORGANIZATIONS_PER_TENANT_MAX, USER_TREE_DEPTH_MAX } from "../../../../common/limits.ts";
import { newStamp, requireExpected, revisionOf, type Expected, type Revised } from "../../../../common/revisions.ts";
import type { Runtime } from "../../../runtime.ts";
import { encodeJson } from "../../../store/format.ts";
import type { KvOperation } from "../../../store/kv.ts";
import type { Principal } from "../../permissions/index.ts";
import { NO_DETAILS, TIME_ZONE } from "./details.ts";
import type { LeftWork } from "../rights/left-work.ts";
import type { Members } from "./members.ts";
import { checkName, deletion, newNodeId, parentIn, requireFree, tooMany, unknownNode } from "./places.ts";
import {
  isOpen,
  memberKey,
  membersOf,
  organizationKey,
  type OrganizationRecord,
  type TreeStore,
  type TreeView,
} from "./tree-store.ts";
import type { Details, MadeOrganization, NewOrganization, NodeChange } from "../types.ts";

const EPOCH_BYTES = 12;

export interface OrganizationDependencies {
  readonly runtime: Pick<Runtime, "clock" | "random">;
  readonly tree: TreeStore;
  readonly members: Members;
  readonly left: LeftWork;
}

/** Changes of organisations. The caller must have at least the rights of every user below the organisation. */
export class OrganizationChanges {
  readonly #runtime: Pick<Runtime, "clock" | "random">;
  readonly #tree: TreeStore;
  readonly #members: Members;
  readonly #left: LeftWork;

  constructor({ runtime, tree, members, left }: OrganizationDependencies) {
    this.#runtime = runtime;
    this.#tree = tree;
    this.#members = members;
    this.#left = left;
  }

  async create(principal: Principal, wanted: NewOrganization, expected?: Expected): Promise<MadeOrganization> {
    const { username } = wanted;
    checkName(username);
    const nowMs = this.#runtime.clock.nowMs();
    const id = newNodeId(this.#runtime.random);
    return this.#tree.restructure(principal.tenant, async (tree) => {
      const parent = parentIn(tree, wanted.parent);
      if (tree.organizations.size >= ORGANIZATIONS_PER_TENANT_MAX)
        throw tooMany("organisations", "ORGANIZATIONS_PER_TENANT_MAX", ORGANIZATIONS_PER_TENANT_MAX);
      requireDepth(tree.organizations.depthOf(parent) + 1);
      const same = [...tree.organizations.all].find((one) => one.parent === parent && one.username === username);
      // Without its stamp: the caller may not see who changed an organisation of that name.
      requireExpected(expected, `The organisation ${username}`, same && {});
      await requireFree(tree, memberKey(parent, username), `There is already a ${username} there.`);
      const record: OrganizationRecord = {
        id,
        parent,
        username,
        details: { ...NO_DETAILS, ...wanted.details },
        active: wanted.active ?? true,
        createdMs: nowMs,
        changedMs: nowMs,
        stamp: newStamp(principal.user, this.#runtime),
      };
      return { if: [], then: placingOrganization(record), users: 0, answer: { id, revision: revisionOf(record) } };
    });
  }

  /**
   * Changes an organisation. Warns of ignored members, and the work that continues although its users become
   * inactive. `AppError("conflict")` if no active administrator would remain.
   */
  async change(
    principal: Principal,
    id: string,
    { expected, ...change }: NodeChange & { readonly expected?: Expected | undefined },
  ): Promise<Revised> {
    const { tenant } = principal;
    const { closed, revision } = await this.#tree.restructure(tenant, async ({ organizations }) => {
      const record = organizations.get(id);
      if (record === undefined) throw unknownNode(id);
      await this.#members.requireAtLeast(principal, organizations, id);
      requireExpected(expected, `The organisation ${record.username}`, record);
      const changed = this.#changed(principal, record, change);
      const closes = record.active && !changed.active;
      if (closes) await this.#members.requireAdministrator(tenant, organizations.with(changed));
      const answer = { closed: closes ? organizations : undefined, revision: revisionOf(changed) };
      return { if: [], then: [putOrganization(changed)], users: 0, answer };
    });
    const warnings = [...ignoredMembers(change), ...(closed ? await this.#told(principal, closed, id) : [])];
    return { revision, warnings };
  }

  #changed(
    { user }: Principal,
    record: OrganizationRecord,
    { details, active = record.active }: NodeChange,
  ): OrganizationRecord {
    const stamp = newStamp(user, this.#runtime);
    const changedMs = this.#runtime.clock.nowMs();
    const merged: Details = { ...record.details, ...details };
    const epoch = Buffer.from(this.#runtime.random.bytes(EPOCH_BYTES)).toString("base64url");
    return { ...record, details: merged, active, ...(record.active && !active && { epoch }), changedMs, stamp };
  }

  async #told(principal: Principal, tree: TreeView["organizations"], id: string): Promise<readonly string[]> {
    const names = await this.#members.namesBelow(principal.tenant, tree, id);
    const includes = (username: string): Promise<boolean> => Promise.resolve(names.has(username));
    return this.#left.told(principal, { name: tree.pathOf(id) ?? id, what: "organisation", includes });
  }

  /**
   * Does nothing if the tenant has an active administrator. Otherwise makes active the organisation whose id `find`
   * answers, and those above it. Answers their paths.
   */
  reopenAbove(tenant: string, find: () => Promise<string | undefined>): Promise<readonly string[]> {
    return this.#tree.restructure(tenant, async ({ organizations }) => {
      const id = await find();
      const isNeeded = id !== undefined && !(await this.#members.hasAdministrator(tenant, organizations));
      const closed = isNeeded ? organizations.above(id).filter(({ active }) => !active) : [];
      const then = closed.map((record) => putOrganization({ ...record, active: true }));
      return { if: [], then, users: 0, answer: closed.map((one) => organizations.pathOf(one.id) ?? one.id) };
    });
  }

  async remove(principal: Principal, id: string, expected?: Expected): Promise<void> {
    await this.#tree.restructure(principal.tenant, async ({ kv, organizations }) => {
      const record = organizations.get(id);
      if (record === undefined) throw unknownNode(id);
      requireExpected(expected, `The organisation ${record.username}`, record);
      if ((await kv.list(membersOf(id), { limit: 1 })).entries.length > 0)
        throw new AppError("conflict", `The organisation ${record.username} is not empty.`);
      const keys = [organizationKey(id), memberKey(record.parent, record.username)];
      return { if: [], then: keys.map(deletion), users: 0, answer: undefined };
    });
  }

  /** Moves an organisation with everything below it. Answers the id. */
  move(principal: Principal, id: string, to: string): Promise<string> {
    const { tenant } = principal;
    return this.#tree.restructure(tenant, async (tree) => {
      await this.#members.requireAtLeast(principal, tree.organizations, id);
      const { after, ...move } = await moveOrganization(tree, id, to);
      if (after && !isOpen(after, id)) await this.#members.requireAdministrator(tenant, after);
      return move;
    });
  }
}

/**
 * Clients may send members of users for an organisation, too. Answers a warning that names the members which would
 * change a user and are ignored.
 */
export function ignoredMembers({
  password = "",
  groups = [],
  isAdmin = false,
  details = {},
}: NodeChange): readonly string[] {
  const ignored = [
    ...(password === "" ? [] : ["passwd"]),
    ...(groups.length === 0 ? [] : ["grpset"]),
    ...(isAdmin ? ["isadmin"] : []),
  ];
  const zone = details.config?.[TIME_ZONE] ?? "";
  return [
    ...(ignored.length === 0
      ? []
      : [`An organisation has no password, groups or rights: ${ignored.join(", ")} were ignored.`]),
    ...(zone === "" ? [] : [`config.${TIME_ZONE} of an organisation has no effect: it is for users.`]),
  ];
}

async function moveOrganization(tree: TreeView, id: string, to: string) {
  const { organizations } = tree;
  const record = organizations.get(id);
  if (record === undefined) throw unknownNode(id);
  const parent = parentIn(tree, to);
  if (organizations.isInside(parent, id))
    throw new AppError("conflict", `${record.username} cannot be moved into itself.`);
  if (parent === record.parent) return { if: [], then: [], users: 0, answer: id, after: undefined };
  requireDepth(organizations.depthOf(parent) + organizations.heightOf(id));
  await requireFree(tree, memberKey(parent, record.username), `There is already a ${record.username} there.`);
  const leave = deletion(memberKey(record.parent, record.username));
  const moved = { ...record, parent };
  const then = [leave, ...placingOrganization(moved)];
  return { if: [], then, users: 0, answer: id, after: organizations.with(moved) };
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
