import { AppError } from "../../../../common/errors.ts";
import type { Stamped } from "../../../../common/revisions.ts";
import { KeyedQueue } from "../../../../common/keyed-queue.ts";
import { USER_TREE_ATTEMPTS_MAX } from "../../../../common/limits.ts";
import type { Random } from "../../../../common/time.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Stores } from "../../../store/engine.ts";
import type { EvidenceList } from "../../../store/evidence.ts";
import { entriesUnder } from "../../../store/kv/entries.ts";
import { decodeStored, encodeJson } from "../../../store/format.ts";
import type { KvCondition, KvOperation, KvStore } from "../../../store/kv.ts";
import { txnOnce } from "../../../store/once.ts";
import { Organizations, type PlacedOrganization } from "./organizations.ts";
import { RecentReads } from "../sessions/recent.ts";
import { repeated } from "../store.ts";
import type { Details, NodeKind } from "../types.ts";

/** A stored organisation. */
export interface OrganizationRecord extends PlacedOrganization, Stamped {
  readonly details: Details;
  /** If false, users below cannot sign in, and their open sessions end. */
  readonly active: boolean;
  /**
   * Changes whenever the organisation is made inactive, which ends earlier sessions of users below. Absent: the
   * organisation was never inactive.
   */
  readonly epoch?: string;
  readonly createdMs: number;
  readonly changedMs: number;
}

/** Kind and name of the node with an id. */
export interface Located {
  readonly otype: NodeKind;
  readonly username: string;
}

/** One planned change of the tree. */
export interface Restructuring<T> {
  /** Conditions in addition to the unchanged tree. */
  readonly if: readonly KvCondition[];
  readonly then: readonly KvOperation[];
  /** Number of users that the change adds (negative: removes). */
  readonly users: number;
  readonly answer: T;
}

/**
 * The tree while a change is planned. If the tree changes before the write, the change is planned again. So values read
 * from the tree hold when the change is made.
 */
export interface TreeView {
  readonly kv: KvStore;
  readonly organizations: Organizations<OrganizationRecord>;
  readonly users: number;
}

interface Guard {
  readonly users: number;
  /** A new random text with every change, so that no two values of the guard are equal. */
  readonly change: string;
}

interface Loaded {
  /** Revision of the guard when the organisations were read. */
  readonly revision: number;
  readonly organizations: Organizations<OrganizationRecord>;
}

const GUARD = "usertree";
export const ORGANIZATIONS = "organizations/";
const IDS = "userids/";
const MEMBERS = "members/";
const CHANGE_BYTES = 9;

export const organizationKey = (id: string): string => ORGANIZATIONS + id;
export const idKey = (id: string): string => IDS + id;
export const membersOf = (parent: string): string => `${MEMBERS}${parent}/`;
export const memberKey = (parent: string, username: string): string => membersOf(parent) + username;

/**
 * The tree of users of each tenant: organisations, their members, and users by id. Every change of the tree is one
 * transaction, conditional on the revision of one key, the guard. So several controllers change the tree one after the
 * other, and never on an outdated state.
 */
export class TreeStore {
  readonly #stores: Stores;
  readonly #random: Random;
  readonly #queue = new KeyedQueue();
  readonly #recent: RecentReads<Loaded>;
  /** The last organisations read, by tenant; read again only if the guard has changed. */
  readonly #loaded = new Map<string, Loaded>();

  constructor(stores: Stores, { clock, random }: Pick<Runtime, "clock" | "random">) {
    this.#stores = stores;
    this.#random = random;
    this.#recent = new RecentReads(clock);
  }

  /** The organisations for a call, at most `SIGN_IN_CACHE_MS` old. */
  async recent(tenant: string, evidence?: EvidenceList): Promise<Organizations<OrganizationRecord>> {
    const loaded = await this.#recent.read(tenant, () => this.#load(tenant), evidence);
    return loaded?.organizations ?? new Organizations([]);
  }

  /** Drops the cached organisations, because another controller may have changed them. */
  forget(tenant: string): void {
    this.#recent.forget(tenant);
  }

  async organizations(tenant: string): Promise<Organizations<OrganizationRecord>> {
    const { kv } = await this.#stores.tenant(tenant);
    return organizationsIn(kv);
  }

  async locate(tenant: string, id: string): Promise<Located | undefined> {
    const { kv } = await this.#stores.tenant(tenant);
    return located(kv, id);
  }

  /**
   * Makes one planned change. `plan` is called again if another controller changed the tree meanwhile. An error of
   * `plan` ends the change.
   */
  restructure<T>(tenant: string, plan: (tree: TreeView) => Promise<Restructuring<T>>): Promise<T> {
    return this.#recent.written(tenant, () => this.#restructured(tenant, plan));
  }

  #restructured<T>(tenant: string, plan: (tree: TreeView) => Promise<Restructuring<T>>): Promise<T> {
    return this.#queue.run([tenant], async () => {
      const { kv } = await this.#stores.tenant(tenant);
      for (let attempt = 1; attempt <= USER_TREE_ATTEMPTS_MAX; attempt++) {
        const guard = await kv.get(GUARD);
        const users = guard === undefined ? 0 : decodeStored<Guard>(guard.value).users;
        const change = await plan({ kv, organizations: await organizationsIn(kv), users });
        const next: Guard = { users: users + change.users, change: this.#newChange() };
        const { ok } = await txnOnce(
          kv,
          {
            if: [{ key: GUARD, revision: guard?.revision ?? 0 }, ...change.if],
            then: [{ kind: "put", key: GUARD, value: encodeJson(next) }, ...change.then],
          },
          repeated,
        );
        if (ok) return change.answer;
      }
      throw new AppError("conflict", "Others change the tree of users all the time: nothing was changed.");
    });
  }

  async #load(tenant: string): Promise<Loaded> {
    const known = this.#loaded.get(tenant);
    this.#loaded.delete(tenant);
    const { kv } = await this.#stores.tenant(tenant);
    const revision = (await kv.get(GUARD))?.revision ?? 0;
    const loaded = known?.revision === revision ? known : { revision, organizations: await organizationsIn(kv) };
    this.#loaded.set(tenant, loaded);
    return loaded;
  }

  #newChange(): string {
    return Buffer.from(this.#random.bytes(CHANGE_BYTES)).toString("base64url");
  }
}

export async function located(kv: KvStore, id: string): Promise<Located | undefined> {
  const [user, organization] = await Promise.all([kv.get(idKey(id)), kv.get(organizationKey(id))]);
  if (user !== undefined) return { otype: "usr", username: decodeStored<{ username: string }>(user.value).username };
  if (organization === undefined) return undefined;
  return { otype: "org", username: decodeStored<OrganizationRecord>(organization.value).username };
}

/** True if the organisation and every one above it are active. */
export function isOpen(organizations: Organizations<OrganizationRecord>, id: string): boolean {
  return organizations.above(id).every(({ active }) => active);
}

async function organizationsIn(kv: KvStore): Promise<Organizations<OrganizationRecord>> {
  const found: OrganizationRecord[] = [];
  for await (const { value } of entriesUnder(kv, ORGANIZATIONS)) found.push(decodeStored<OrganizationRecord>(value));
  return new Organizations(found);
}
