import { AppError } from "../../../common/errors.ts";
import { TENANT_REGISTER_ATTEMPTS_MAX } from "../../../common/limits.ts";
import type { Stores } from "../../store/engine.ts";
import { entriesUnder } from "../../store/kv/entries.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import type { KvEntry, KvStore } from "../../store/kv.ts";
import { putOnce } from "../../store/once.ts";
import type { TenantRecord } from "./types.ts";

export const TENANTS_PREFIX = "tenants/";
const FIRST = "installation/first-tenant";
const IMAGES = "tenant-images/";

/** A record as read or written; the next write is conditional on its revision. */
export interface VersionedTenant {
  readonly record: TenantRecord;
  readonly revision: number;
}

/** Data URIs or addresses; empty if there is none. */
export interface Images {
  readonly icon: string;
  readonly logo: string;
}

/** The registry of tenants in the system store, with tenants in all phases of their life. */
export class TenantStore {
  readonly #stores: Pick<Stores, "system">;
  #first: string | undefined;

  constructor(stores: Pick<Stores, "system">) {
    this.#stores = stores;
  }

  async find(name: string): Promise<VersionedTenant | undefined> {
    const entry = await (await this.#kv()).get(TENANTS_PREFIX + name);
    return entry && versionedOf(entry);
  }

  /** Registers a tenant. Returns the given record, or the existing one. */
  async register(record: TenantRecord): Promise<VersionedTenant> {
    for (let attempt = 1; attempt <= TENANT_REGISTER_ATTEMPTS_MAX; attempt++) {
      const written = await (await this.#kv()).put(TENANTS_PREFIX + record.name, encodeJson(record), { ifRevision: 0 });
      if (written.ok) return { record, revision: written.revision };
      if (written.current !== undefined) return versionedOf(written.current);
    }
    throw new AppError("conflict", `Others register and remove the tenant ${record.name} all the time.`);
  }

  /** `undefined`: the record has changed, nothing was written. Revision 0: there must be no record. */
  async replace(revision: number, record: TenantRecord): Promise<VersionedTenant | undefined> {
    const put = { key: TENANTS_PREFIX + record.name, value: encodeJson(record), ifRevision: revision };
    const written = await putOnce(await this.#kv(), put);
    return written.ok ? { record, revision: written.revision } : undefined;
  }

  /** The last step of a removal. */
  async remove({ record, revision }: VersionedTenant): Promise<void> {
    await (await this.#kv()).delete(TENANTS_PREFIX + record.name, { ifRevision: revision });
  }

  /** In the order of names. */
  async *all(): AsyncGenerator<VersionedTenant> {
    for await (const entry of entriesUnder(await this.#kv(), TENANTS_PREFIX)) yield versionedOf(entry);
  }

  /** The tenant whose administrators manage the others: the first one ever created. It never changes. */
  async first(): Promise<string | undefined> {
    if (this.#first !== undefined) return this.#first;
    const entry = await (await this.#kv()).get(FIRST);
    return (this.#first = entry && decodeStored<string>(entry.value));
  }

  /** Only the first call has an effect. */
  async noteFirst(name: string): Promise<void> {
    await (await this.#kv()).put(FIRST, encodeJson(name), { ifRevision: 0 });
  }

  async images(name: string): Promise<Images> {
    const kv = await this.#kv();
    const [icon, logo] = await Promise.all([kv.get(imageKey(name, "icon")), kv.get(imageKey(name, "logo"))]);
    return { icon: icon ? decodeStored<string>(icon.value) : "", logo: logo ? decodeStored<string>(logo.value) : "" };
  }

  /** Stores the named images. An empty text removes an image. */
  async putImages(name: string, images: { readonly [kind in keyof Images]?: string | undefined }): Promise<void> {
    const kv = await this.#kv();
    for (const kind of ["icon", "logo"] as const) {
      const image = images[kind];
      if (image === undefined) continue;
      if (image === "") await kv.delete(imageKey(name, kind));
      else await kv.put(imageKey(name, kind), encodeJson(image));
    }
  }

  async #kv(): Promise<KvStore> {
    return (await this.#stores.system()).kv;
  }
}

export function imageKeys(name: string): readonly string[] {
  return [imageKey(name, "icon"), imageKey(name, "logo")];
}

export function versionedOf({ value, revision }: Pick<KvEntry, "value" | "revision">): VersionedTenant {
  return { record: decodeStored<TenantRecord>(value), revision };
}

function imageKey(name: string, kind: keyof Images): string {
  return `${IMAGES}${name}/${kind}`;
}
