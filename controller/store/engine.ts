import type { BlobStore } from "./blobs.ts";
import type { KvStore } from "./kv.ts";
import type { ObjectStore } from "./objects.ts";
import type { ScrubStore } from "./scrub.ts";

/** The three seams of one tenant, and what is derived in them. Nothing crosses from one tenant's store to another's. */
export interface TenantStore {
  readonly kv: KvStore;
  readonly objects: ObjectStore;
  readonly blobs: BlobStore;
  readonly scrub: ScrubStore;
}

/** Where the areas get their stores from. */
export interface Stores {
  /** What belongs to the installation: tenants, sessions index, certificate authority, platform audit. */
  system(): Promise<TenantStore>;
  /** `AppError("not_found")` for a tenant that was never created. Opened lazily, kept open. */
  tenant(name: string): Promise<TenantStore>;
}

/** One way to store. `main.ts` and tests choose; no other code knows which one it is. */
export interface Engine extends Stores {
  readonly kind: "embedded" | "cluster";
  /** Its parts are other programs: who calls from outside gives each call a `CallDeadline`. */
  readonly isRemote: boolean;
  /** Idempotent. A name is 1 to 48 lower-case letters, digits and underscores, and begins with a letter. */
  createTenant(name: string, options?: { readonly replicationFactor?: number }): Promise<void>;
  /** Removes the tenant with everything in it. Idempotent. */
  dropTenant(name: string): Promise<void>;
  /**
   * Closes what this controller has open of a tenant, and touches no data: for one that another controller removed. The
   * next `tenant` opens it again. Idempotent.
   */
  releaseTenant(name: string): Promise<void>;
  /** The data nodes behind this engine. */
  nodes(): Promise<readonly DataNode[]>;
  /**
   * Resolves when every part does what the next call needs of it: agreed writes and reads. Else it throws
   * `AppError("unavailable")` that names the part and the reason, within `READY_WAIT_MS` of its silence. What only the
   * calls of one tenant need is an answer.
   */
  ready(): Promise<Readiness>;
  close(): Promise<void>;
}

export interface Readiness {
  readonly lost: readonly LostTenant[];
}

/** A tenant whose objects and contents are not there any more. Its calls are `AppError("unavailable")`. */
export interface LostTenant {
  readonly tenant: string;
  /** What has to be restored. */
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
