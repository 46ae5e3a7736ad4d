import type { BlobStore } from "./blobs.ts";
import type { KvStore } from "./kv.ts";
import type { ObjectStore } from "./objects.ts";
import type { ScrubStore } from "./scrub.ts";

/** The three seams of one tenant and its derived data. No data moves from one tenant's store to another's. */
export interface TenantStore {
  readonly kv: KvStore;
  readonly objects: ObjectStore;
  readonly blobs: BlobStore;
  readonly scrub: ScrubStore;
}

/** Gives the areas their stores. */
export interface Stores {
  /** The store of the installation: tenants, sessions index, certificate authority, platform audit. */
  system(): Promise<TenantStore>;
  /** `AppError("not_found")` for a tenant that was never created. Stores are opened on demand and stay open. */
  tenant(name: string): Promise<TenantStore>;
}

/** A storage engine. `main.ts` and tests choose it; no other code knows which one it is. */
export interface Engine extends Stores {
  readonly kind: "embedded" | "cluster";
  /** True if its parts are other programs: then each call from outside needs a `CallDeadline`. */
  readonly isRemote: boolean;
  /** Idempotent. A name has 1 to 48 lower-case letters, digits and underscores, and begins with a letter. */
  createTenant(name: string, options?: { readonly replicationFactor?: number }): Promise<void>;
  /** Removes the tenant with all its data. Idempotent. */
  dropTenant(name: string): Promise<void>;
  /**
   * Closes this controller's stores of a tenant without changing data; for a tenant that another controller removed.
   * The next `tenant` opens them again. Idempotent.
   */
  releaseTenant(name: string): Promise<void>;
  /** The data nodes of this engine. */
  nodes(): Promise<readonly DataNode[]>;
  /**
   * Resolves when every part of the engine can serve the next call, including agreed writes and reads. Otherwise it
   * throws `AppError("unavailable")` with the part and the reason; it waits at most `READY_WAIT_MS` for a part that
   * does not answer. If the data of one tenant is lost, that is no error: the result reports it.
   */
  ready(): Promise<Readiness>;
  close(): Promise<void>;
}

export interface Readiness {
  readonly lost: readonly LostTenant[];
}

/** A tenant whose objects and contents are gone. Its calls are `AppError("unavailable")`. */
export interface LostTenant {
  readonly tenant: string;
  /** The keyspace that must be restored. */
  readonly keyspace: string;
}

export interface DataNode {
  readonly datacenter: string;
  readonly hostid: string;
  readonly isup: boolean;
  readonly peer: string;
  readonly port: number;
  readonly rack: string;
}
