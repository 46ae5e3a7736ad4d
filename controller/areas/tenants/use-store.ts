import type { KvEntry, KvStore } from "../../store/kv.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import { putOnce } from "../../store/once.ts";
import type { Growth } from "../objects/index.ts";
import type { Measure } from "./quotas.ts";

export const USES_PREFIX = "tenant-use/";

/** What a tenant with a quota has, as all controllers know it. */
export interface StoredUse {
  /** Absent while it is counted for the first time. */
  readonly measured?: Growth & { readonly atMs: number };
  /** What controllers told since the counting of `measured` began. */
  readonly grown: Growth;
  /** The quotas that are exceeded, as it was told last. */
  readonly beyond: readonly Measure[];
  /** Unlike that of any other write. */
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
