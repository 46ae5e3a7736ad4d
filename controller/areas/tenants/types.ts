import type { Growth } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";

/** A company on this installation: its own stores, users and name space. */
export interface Tenant {
  readonly name: string;
  /** Root of its classes and configuration keys, such as `/matrix`. Never changes. */
  readonly ospace: string;
  readonly fullname: string;
  readonly title: string;
  readonly createdMs: number;
  /** Address of the company's own site; empty when absent. */
  readonly web?: string;
  readonly config?: Readonly<Record<string, string>>;
}

export interface NewTenant {
  readonly name: string;
  readonly ospace: string;
  readonly fullname?: string;
  readonly title?: string;
  readonly replicationFactor?: number;
}

export interface Tenants {
  /**
   * Creates the tenant with its stores if none has that name. `AppError("conflict")` if it has another name space, or
   * is deleted and its data is kept.
   */
  ensureTenant(tenant: NewTenant): Promise<Tenant>;
  /** `AppError("unavailable")` names a tenant whose store is missing or damaged. */
  requireStores(): Promise<void>;
  /** As for all functions below, a tenant that is being created or was deleted does not exist. */
  get(name: string): Promise<Tenant | undefined>;
  /** In the order of names. */
  list(): Promise<readonly Tenant[]>;
  /** The installation's only tenant; undefined when there are several or none. */
  only(): Promise<Tenant | undefined>;
  /**
   * `AppError("not_found")` if there is no such tenant. Works for a tenant that is being created, because its creation
   * needs it.
   */
  ospaceOf(name: string): Promise<string>;
}

/**
 * Phase of a tenant's life. `making`: its stores or its administrator are not complete; `deleted`: it cannot be used,
 * its data is kept; `purging`: its data is being removed and cannot be restored.
 */
export type Life =
  | { readonly phase: "making"; readonly owner: string }
  | { readonly phase: "deleted"; readonly atMs: number; readonly purgeAtMs: number }
  | { readonly phase: "purging"; readonly owner: string };

/** A tenant as stored in the registry. Without `life` it is open for calls. */
export interface TenantRecord extends Tenant {
  readonly life?: Life;
  /** Name of its stores in the engine, never used again for another tenant. Absent: the tenant's name. */
  readonly store?: string;
}

export interface Company extends Required<Tenant> {
  readonly icon: string;
  readonly logo: string;
  readonly license: string;
  /** Time when the data of a deleted tenant is removed. */
  readonly purgeAtMs?: number;
  /** Present for a tenant with a quota, once it is counted. */
  readonly use?: ShownUse;
}

/** Current use of a tenant with a quota. */
export interface ShownUse extends Growth {
  /** Time of the count; writes and removals since then are added. */
  readonly measuredMs: number;
  /** The measures that exceed the quota. */
  readonly beyond: (keyof Growth)[];
}

export interface CompanyChange {
  readonly name: string;
  readonly fullname?: string | undefined;
  readonly ospace?: string | undefined;
  readonly title?: string | undefined;
  readonly web?: string | undefined;
  readonly icon?: string | undefined;
  readonly logo?: string | undefined;
  readonly config?: Readonly<Record<string, string>> | undefined;
}

export interface NewCompany extends CompanyChange {
  readonly password?: string | undefined;
}

/** The administrator of a new tenant; `password` is present only if it was generated. */
export interface NewAdministrator {
  readonly username: string;
  readonly password?: string;
}

export interface Companies {
  list(principal: Principal, options?: { readonly deleted?: boolean }): AsyncIterable<readonly Company[]>;
  get(principal: Principal, name: string): Promise<Company>;
  create(principal: Principal, wanted: NewCompany): Promise<NewAdministrator>;
  update(principal: Principal, change: CompanyChange): Promise<Company>;
  remove(principal: Principal, name: string, options?: { readonly purge?: boolean }): Promise<void>;
  restore(principal: Principal, name: string): Promise<Company>;
}
