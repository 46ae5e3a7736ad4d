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
   * Makes the tenant with its stores when there is none of that name; `AppError("conflict")` when it has another name
   * space, or is deleted and kept.
   */
  ensureTenant(tenant: NewTenant): Promise<Tenant>;
  /** `AppError("unavailable")` names a tenant whose store is missing or damaged. */
  requireStores(): Promise<void>;
  /** As all below: one that is being made, or was deleted, is not there. */
  get(name: string): Promise<Tenant | undefined>;
  /** In the order of names. */
  list(): Promise<readonly Tenant[]>;
  /** The installation's only tenant; undefined when there are several or none. */
  only(): Promise<Tenant | undefined>;
  /** `AppError("not_found")` when there is no such tenant. Known of one that is being made, for what makes it. */
  ospaceOf(name: string): Promise<string>;
}

/**
 * Where a tenant is in its life. `making`: its stores or its administrator are not all there; `deleted`: nothing of it
 * is reached, its data is kept; `purging`: its data is being removed, and cannot be had back.
 */
export type Life =
  | { readonly phase: "making"; readonly owner: string }
  | { readonly phase: "deleted"; readonly atMs: number; readonly purgeAtMs: number }
  | { readonly phase: "purging"; readonly owner: string };

/** A tenant as it lies in the registry. Without `life` it is there for calls. */
export interface TenantRecord extends Tenant {
  readonly life?: Life;
  /** What the engine calls its stores: never used again for another tenant. Absent: its name. */
  readonly store?: string;
}

/** A tenant as the interface shows it. */
export interface Company extends Required<Tenant> {
  readonly icon: string;
  readonly logo: string;
  readonly license: string;
  /** Of a deleted one: when its data goes. */
  readonly purgeAtMs?: number;
  /** Of one with a quota, once it is counted. */
  readonly use?: ShownUse;
}

/** What a tenant with a quota has. */
export interface ShownUse extends Growth {
  /** When it was counted; what was written and removed since is added. */
  readonly measuredMs: number;
  /** Of which there is more than the quota allows. */
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

/** The administrator of a new tenant; `password` only when it was generated. */
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
