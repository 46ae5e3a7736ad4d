import type { KvEntry, KvStore } from "../../store/kv.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import { putOnce } from "../../store/once.ts";
import type { Growth } from "../objects/index.ts";
import type { Measure } from "./quotas.ts";

export const USES_PREFIX = "tenant-use/";

/** Use of a tenant with a quota, shared by all controllers. */
export interface StoredUse {
  /** Absent during the first count. */
  readonly measured?: Growth & { readonly atMs: number };
  /** Growth that controllers have reported since the count in `measured` began. */
  readonly grown: Growth;
  /** The exceeded quotas at the last write. */
  readonly beyond: readonly Measure[];
  /** Unique for each write. */
  readonly writer: string;
}

export interface NotedUse {
  readonly use: StoredUse;
  readonly revision: number;
}

export class UseStore {
  readonly #kv: () => Promise<KvStore>;

  constructor(kv: () => Promise<KvStore>) {
    this.#kv = kv;
  }

  async find(tenant: string): Promise<NotedUse | undefined> {
    const entry = await (await this.#kv()).get(USES_PREFIX + tenant);
    return entry && notedUse(entry);
  }

  /** `undefined`: another write was first. Revision 0: there must be none. */
  async replace(tenant: string, revision: number, use: StoredUse): Promise<NotedUse | undefined> {
    const put = { key: USES_PREFIX + tenant, value: encodeJson(use), ifRevision: revision };
    const written = await putOnce(await this.#kv(), put);
    return written.ok ? { use, revision: written.revision } : undefined;
  }
}

export function notedUse({ value, revision }: Pick<KvEntry, "value" | "revision">): NotedUse {
  return { use: decodeStored<StoredUse>(value), revision };
}
