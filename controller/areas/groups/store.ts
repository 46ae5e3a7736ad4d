import { AppError } from "../../../common/errors.ts";
import { GROUP_READ_ATTEMPTS_MAX, GROUP_RECORD_MAX_BYTES } from "../../../common/limits.ts";
import { unstamped } from "../../../common/revisions.ts";
import type { Stores } from "../../store/engine.ts";
import { entriesUnder } from "../../store/kv/entries.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import type { KvOperation, KvStore } from "../../store/kv.ts";
import { txnOnce } from "../../store/once.ts";
import { BUILT_IN_GROUPS, PUBLIC_PERMISSION } from "./builtin.ts";
import type { GroupRecord, PathRecord } from "./types.ts";

/** All definitions of a tenant, as read at one time. */
export interface Stored {
  /** Revision of the latest change; 0 before the first. Rises with every change. */
  readonly revision: number;
  readonly groups: readonly GroupRecord[];
  readonly paths: readonly PathRecord[];
}

export interface StoredChange {
  readonly groups?: readonly GroupRecord[];
  readonly goneGroups?: readonly string[];
  readonly paths?: readonly PathRecord[];
  readonly gonePaths?: readonly string[];
  /** True: every controller drops its cached data of the tenant. */
  readonly refresh?: true;
}

/** A change whose groups and API permissions have the stamp of their author. */
export type StampedChange = StoredChange & Required<Pick<StoredChange, "groups" | "paths">>;

const GROUPS = "perms/groups/";
const PATHS = "perms/paths/";
/**
 * Every change writes this key, on condition of its revision. So a change applies only to the state that its author
 * read.
 */
export const REVISION_KEY = "perms/revision";
/**
 * Written if every controller must drop its cached data. The key is below `REVISION_KEY`, so one watch reports both.
 */
export const REFRESH_KEY = "perms/revision/refresh";

/** Groups and API permissions in their tenants' key-value stores. */
export class GroupStore {
  readonly #stores: Stores;

  constructor(stores: Stores) {
    this.#stores = stores;
  }

  async kv(tenant: string): Promise<KvStore> {
    return (await this.#stores.tenant(tenant)).kv;
  }

  async revision(tenant: string): Promise<number> {
    return (await (await this.kv(tenant)).get(REVISION_KEY))?.revision ?? 0;
  }

  /** Reads all definitions. `AppError("unavailable")` if they change during every attempt. */
  async load(tenant: string): Promise<Stored> {
    const kv = await this.kv(tenant);
    let revision = await this.revision(tenant);
    for (let attempt = 0; attempt < GROUP_READ_ATTEMPTS_MAX; attempt++) {
      const groups = await all<GroupRecord>(kv, GROUPS);
      const paths = await all<PathRecord>(kv, PATHS);
      const after = await this.revision(tenant);
      if (after === revision)
        return revision === 0
          ? { revision, groups: BUILT_IN_GROUPS, paths: [PUBLIC_PERMISSION] }
          : { revision, groups, paths };
      revision = after;
    }
    throw new AppError("unavailable", "The groups of this tenant change all the time: none could be read.");
  }

  /**
   * Stores the change. False if the definitions have changed since `on` was read. `mark` must be different for every
   * change.
   */
  async change(
    tenant: string,
    on: Stored,
    { change, mark }: { change: StampedChange; mark: string },
  ): Promise<boolean> {
    const fresh = on.revision === 0 ? on : { groups: [], paths: [] };
    const puts = new Map<string, Uint8Array>();
    for (const group of [...fresh.groups, ...change.groups]) puts.set(GROUPS + group.id, encoded(group));
    for (const path of [...fresh.paths, ...change.paths]) puts.set(PATHS + path.name, encoded(path));
    const gone = [
      ...(change.goneGroups ?? []).map((id) => GROUPS + id),
      ...(change.gonePaths ?? []).map((name) => PATHS + name),
    ];
    for (const key of gone) puts.delete(key);
    const operations: KvOperation[] = [
      ...[REVISION_KEY, ...(change.refresh ? [REFRESH_KEY] : [])].map(
        (key) => ({ kind: "put", key, value: encodeJson({ mark }) }) as const,
      ),
      ...[...puts].map(([key, value]) => ({ kind: "put" as const, key, value })),
      ...gone.map((key) => ({ kind: "delete" as const, key })),
    ];
    const conditions = [{ key: REVISION_KEY, revision: on.revision }];
    return (await txnOnce(await this.kv(tenant), { if: conditions, then: operations })).ok;
  }
}

async function all<T>(kv: KvStore, prefix: string): Promise<readonly T[]> {
  const records: T[] = [];
  for await (const { value } of entriesUnder(kv, prefix)) records.push(decodeStored<T>(value));
  return records;
}

function encoded(record: GroupRecord | PathRecord): Uint8Array {
  if (encodeJson(unstamped(record)).byteLength <= GROUP_RECORD_MAX_BYTES) return encodeJson(record);
  throw new AppError("too_large", `${record.name} has more than ${GROUP_RECORD_MAX_BYTES} bytes.`, {
    details: { limit: "GROUP_RECORD_MAX_BYTES" },
  });
}
