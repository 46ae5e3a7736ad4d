import { AppError } from "../../../common/errors.ts";
import { TENANT_GRACE_MS, TENANT_LEAVE_WAIT_MS, TENANTS_MAX } from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import type { Engine } from "../../store/engine.ts";
import {
  allows,
  requireHolding,
  requireNoPartToken,
  requirePermission,
  ROLES,
  systemPrincipal,
  type Principal,
} from "../permissions/index.ts";
import { checkChange, replicationFactorOf } from "./checks.ts";
import type { TenantGate } from "./gate.ts";
import { checkOspace, checkTenantName, isTenantName, PHASES, tenantNotFound } from "./service.ts";
import { TenantStore, type VersionedTenant } from "./store.ts";
import type { TenantUse } from "./use.ts";
import type { Companies, Company, CompanyChange, NewAdministrator, NewCompany, TenantRecord } from "./types.ts";

/** The part of the area `users` that a new tenant needs. */
export interface Administrators {
  setPassword(principal: Principal, username: string, password: string): Promise<void>;
  readonly operator: {
    ensureAdministrator(wanted: {
      readonly tenant: string;
      readonly username: string;
      readonly password?: string;
    }): Promise<{ readonly created: boolean; readonly generatedPassword?: string }>;
    resetPassword(tenant: string, username: string): Promise<string>;
  };
}

export interface CompanyDependencies {
  readonly engine: Pick<Engine, "system" | "createTenant">;
  readonly runtime: Runtime;
  readonly gate: TenantGate;
  readonly users: Administrators;
  /** This controller, and a test for controllers that are still alive. */
  readonly controllers: { readonly own: string; has(id: string): boolean };
  /** Why a password is refused; empty if it is accepted. `known` are words that do not make it stronger. */
  readonly passwordFault: (password: string, known: readonly string[]) => string;
  /** Called when data of a deleted tenant may be due for removal. */
  readonly onDue: () => void;
  /** The licence of a tenant as the interface shows it: JSON. */
  readonly licenseOf: (tenant: string) => Promise<string>;
  readonly use: Pick<TenantUse, "shown" | "measureSoon">;
}

const ADMINISTRATOR = "admin";
const STORE_BYTES = 8;
const STORE_NAME_MAX = 24;

/**
 * Tenants for callers. Administrators of the first tenant manage all tenants, others see only their own. Every
 * operation is first stored in the registry, so it can be repeated after any failure.
 */
export class CompanyService implements Companies {
  readonly #with: CompanyDependencies;
  readonly #store: TenantStore;
  /** Names of tenants that this controller is creating. */
  readonly #making = new Set<string>();

  constructor(dependencies: CompanyDependencies) {
    this.#with = dependencies;
    this.#store = new TenantStore(dependencies.engine);
  }

  async *list(principal: Principal, options: { readonly deleted?: boolean } = {}): AsyncGenerator<readonly Company[]> {
    requirePermission(principal, "tenants:read");
    const phase = options.deleted === true ? "deleted" : undefined;
    const all = await this.#manages(principal);
    for await (const { record } of this.#store.all()) {
      if (record.life?.phase === phase && (all || record.name === principal.tenant)) yield [await this.#shown(record)];
    }
  }

  /** `AppError("not_found")` also for a tenant that is deleted or that the caller may not see. */
  async get(principal: Principal, name: string): Promise<Company> {
    requirePermission(principal, "tenants:read");
    if (name !== principal.tenant && !(await this.#manages(principal))) throw tenantNotFound(name);
    return this.#shown((await this.#open(name)).record);
  }

  /**
   * Creates the tenant with its stores and its administrator. If that fails midway, the tenant cannot be used, and the
   * same call resumes.
   */
  async create(principal: Principal, wanted: NewCompany): Promise<NewAdministrator> {
    requirePermission(principal, "tenants:write");
    await this.#requireFirst(principal);
    // The caller chooses or receives the password of an administrator.
    requireNoPartToken(principal);
    requireHolding(principal, ROLES.administrator, "an administrator");
    const { name, ospace = `/${name}` } = wanted;
    checkTenantName(name);
    checkOspace(ospace);
    checkChange(wanted);
    const { password } = wanted;
    const fault = password === undefined ? "" : this.#with.passwordFault(password, [ADMINISTRATOR, name]);
    if (fault !== "") throw new AppError("invalid", fault, { details: { fields: ["password"] } });
    if (this.#making.has(name)) throw inPhase(name, "making");
    this.#making.add(name);
    try {
      return await this.#make({ ...wanted, ospace });
    } finally {
      this.#making.delete(name);
    }
  }

  /** Absent members stay as they are. */
  async update(principal: Principal, change: CompanyChange): Promise<Company> {
    requirePermission(principal, "tenants:write");
    await this.#requireFirst(principal);
    checkChange(change);
    const noted = await this.#open(change.name);
    const { record } = noted;
    if (change.ospace !== undefined && change.ospace !== record.ospace)
      throw new AppError("conflict", `The name space of ${record.name} is ${record.ospace} and never changes.`);
    const wantedFactor = replicationFactorOf(change.config);
    if (wantedFactor !== undefined && wantedFactor !== replicationFactorOf(record.config))
      throw new AppError("unsupported", "replication_factor is settled when a tenant is made.");
    const { fullname, title, web, config } = change;
    const changed = {
      ...record,
      ...present({ fullname, title, web }),
      ...(config && { config: { ...record.config, ...config } }),
    };
    await this.#write(noted, changed);
    await this.#store.putImages(record.name, change);
    if (config !== undefined) this.#with.use.measureSoon(record.name);
    return this.#shown(changed);
  }

  /**
   * From now on the tenant does not exist for calls. Its data is kept for `TENANT_GRACE_MS`; with `purge` the next
   * maintenance removes it. Safe to repeat. `AppError("deadline")`: the tenant is deleted, but a controller has not yet
   * confirmed that it no longer serves it.
   */
  async remove(
    principal: Principal,
    name: string,
    { purge = false }: { readonly purge?: boolean } = {},
  ): Promise<void> {
    requirePermission(principal, "tenants:write");
    await this.#requireFirst(principal);
    if (name === (await this.#store.first()))
      throw new AppError("conflict", `${name} is the first tenant, whose administrators manage the others: it stays.`);
    const noted = await this.#any(name);
    const before = noted.record.life;
    if (this.#making.has(name) || this.#isMadeElsewhere(noted.record)) throw inPhase(name, "making");
    const nowMs = this.#with.runtime.clock.nowMs();
    const purgeAtMs = purge || before?.phase === "making" ? nowMs : nowMs + TENANT_GRACE_MS;
    if (before?.phase === "purging" || (before?.phase === "deleted" && !purge)) return this.#everywhere(noted);
    const atMs = before?.phase === "deleted" ? before.atMs : nowMs;
    const life = { phase: "deleted", atMs, purgeAtMs } as const;
    await this.#everywhere(await this.#write(noted, { ...noted.record, life }));
    if (purgeAtMs <= nowMs) this.#with.onDue();
  }

  /** Restores a deleted tenant within the grace period, with all its data. */
  async restore(principal: Principal, name: string): Promise<Company> {
    requirePermission(principal, "tenants:write");
    await this.#requireFirst(principal);
    const noted = await this.#any(name);
    const { life } = noted.record;
    const record = openAgain(noted.record);
    if (life === undefined) throw new AppError("conflict", `The tenant ${name} is not deleted.`);
    if (life.phase !== "deleted") throw inPhase(name, life.phase);
    await this.#write(noted, record);
    return this.#shown(record);
  }

  async #make(wanted: NewCompany & { readonly ospace: string }): Promise<NewAdministrator> {
    const { engine, users } = this.#with;
    const begun = await this.#begin(wanted);
    const { name, store = name } = begun.record;
    const factor = replicationFactorOf(wanted.config);
    await engine.createTenant(store, factor === undefined ? {} : { replicationFactor: factor });
    await this.#store.putImages(name, wanted);
    const { password: given } = wanted;
    const made = await users.operator.ensureAdministrator({
      tenant: name,
      username: ADMINISTRATOR,
      ...(given !== undefined && { password: given }),
    });
    const password = made.created ? made.generatedPassword : await this.#newPassword(begun.record, given);
    await this.#write(begun, openAgain(begun.record));
    return { username: ADMINISTRATOR, ...(password !== undefined && { password }) };
  }

  /** Stored in the registry before anything is created. Resumes an earlier attempt. */
  async #begin(wanted: NewCompany & { readonly ospace: string }): Promise<VersionedTenant> {
    const { name, ospace, fullname = name, title = fullname, web, config } = wanted;
    const known = await this.#store.find(name);
    const phase = known?.record.life?.phase;
    if (known && phase === undefined) throw new AppError("conflict", `There is already a tenant ${name}.`);
    if (known && phase !== undefined && (phase !== "making" || this.#isMadeElsewhere(known.record)))
      throw inPhase(name, phase);
    if (!known) await this.#checkCount();
    const record: TenantRecord = {
      name,
      ospace,
      fullname,
      title,
      ...present({ web, config }),
      createdMs: known?.record.createdMs ?? this.#with.runtime.clock.nowMs(),
      store: known?.record.store ?? this.#storeName(name),
      life: { phase: "making", owner: this.#with.controllers.own },
    };
    return this.#write(known ?? { record, revision: 0 }, record);
  }

  /** Sets a new password: the administrator exists from an attempt whose caller received none. */
  async #newPassword({ name, ospace }: TenantRecord, given: string | undefined): Promise<string | undefined> {
    const { users } = this.#with;
    if (given === undefined) return users.operator.resetPassword(name, ADMINISTRATOR);
    await users.setPassword(systemPrincipal(name, ospace, ""), ADMINISTRATOR, given);
    return undefined;
  }

  /** Never the name of other stores, not even those of an earlier tenant of this name. */
  #storeName(name: string): string {
    const own = Buffer.from(this.#with.runtime.random.bytes(STORE_BYTES)).toString("hex");
    return `${name.slice(0, STORE_NAME_MAX)}_${own}`;
  }

  async #checkCount(): Promise<void> {
    let count = 0;
    for await (const { record } of this.#store.all()) count += record.life?.phase === "purging" ? 0 : 1;
    if (count >= TENANTS_MAX)
      throw new AppError("too_large", `There are ${TENANTS_MAX} tenants already.`, {
        details: { limit: "TENANTS_MAX" },
      });
  }

  #isMadeElsewhere({ life }: TenantRecord): boolean {
    const { controllers } = this.#with;
    return life?.phase === "making" && life.owner !== controllers.own && controllers.has(life.owner);
  }

  async #write(noted: VersionedTenant, record: TenantRecord): Promise<VersionedTenant> {
    const written = await this.#store.replace(noted.revision, record);
    if (!written) throw new AppError("conflict", `The tenant ${record.name} was changed by somebody else meanwhile.`);
    this.#with.gate.note(written);
    return written;
  }

  /** Waits until no controller serves the tenant. */
  async #everywhere({ record, revision }: VersionedTenant): Promise<void> {
    const { gate, runtime } = this.#with;
    const over = new AbortController();
    const cancel = runtime.clock.after(TENANT_LEAVE_WAIT_MS, () => over.abort());
    try {
      await gate.settled();
      if (await gate.acknowledged(revision, over.signal)) return;
    } finally {
      cancel();
    }
    throw new AppError(
      "deadline",
      `The tenant ${record.name} is deleted, and another controller has not confirmed that within ${TENANT_LEAVE_WAIT_MS / 1_000} s: repeat the call to wait on.`,
    );
  }

  async #open(name: string): Promise<VersionedTenant> {
    const noted = isTenantName(name) ? await this.#store.find(name) : undefined;
    if (noted === undefined || noted.record.life !== undefined) throw tenantNotFound(name);
    return noted;
  }

  async #any(name: string): Promise<VersionedTenant> {
    const noted = isTenantName(name) ? await this.#store.find(name) : undefined;
    if (noted === undefined) throw tenantNotFound(name);
    return noted;
  }

  async #requireFirst(principal: Principal): Promise<void> {
    if (principal.tenant !== (await this.#store.first()))
      throw new AppError("denied", "Only administrators of the first tenant manage tenants.", {
        details: { permission: "tenants:write" },
      });
  }

  async #manages(principal: Principal): Promise<boolean> {
    return allows(principal, "tenants:write") && principal.tenant === (await this.#store.first());
  }

  async #shown({
    name,
    ospace,
    fullname,
    title,
    createdMs,
    web = "",
    config = {},
    life,
  }: TenantRecord): Promise<Company> {
    const [images, license] = await Promise.all([this.#store.images(name), this.#with.licenseOf(name)]);
    const purge = life?.phase === "deleted" ? { purgeAtMs: life.purgeAtMs } : {};
    const use = life === undefined ? this.#with.use.shown(name) : undefined;
    return { name, fullname, ospace, title, web, createdMs, config, ...images, license, ...purge, ...(use && { use }) };
  }
}

/** The record without `life`: open for calls. */
function openAgain({ life: _, ...record }: TenantRecord): TenantRecord {
  return record;
}

function inPhase(name: string, phase: keyof typeof PHASES): AppError {
  return new AppError("conflict", `The tenant ${name} is ${PHASES[phase]}.`);
}

function present<T extends object>(members: T): { readonly [member in keyof T]?: NonNullable<T[member]> } {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as never;
}
