/** A company on this installation: its own stores, users and name space. */
export interface Tenant {
  readonly name: string;
  /** Root of its classes and configuration keys, such as `/matrix`. Never changes. */
  readonly ospace: string;
  readonly fullname: string;
  readonly title: string;
  readonly createdMs: number;
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
   * space.
   */
  ensureTenant(tenant: NewTenant): Promise<Tenant>;
  /** `AppError("unavailable")` names a tenant whose store is missing or damaged. */
  requireStores(): Promise<void>;
  get(name: string): Promise<Tenant | undefined>;
  /** In the order of names. */
  list(): Promise<readonly Tenant[]>;
  /** The installation's only tenant; undefined when there are several or none. */
  only(): Promise<Tenant | undefined>;
  /** `AppError("not_found")` when there is no such tenant. */
  ospaceOf(name: string): Promise<string>;
}
