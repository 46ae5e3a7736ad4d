import type { KeyObject } from "node:crypto";
import { AppError, isAppError } from "../../../common/errors.ts";
import { LICENCE_WARNED_DAYS, LICENCE_WARNED_SHARE } from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import { requirePermission, type Principal } from "../permissions/index.ts";
import { licenceKey, readDocument } from "./document.ts";
import { licenceKeyOf, LicenceStore } from "./store.ts";
import type { Licence, LicenceDocument, LicenceInfo, Licences } from "./types.ts";

const DAY_MS = 24 * 3_600_000;
const UNLIMITED: Licence = { expire: -1, server: -1, agent: -1 };

/** Number of hosts of a tenant. */
export interface HostCounts {
  readonly agents: (tenant: string) => Promise<number>;
  readonly servers: (tenant: string) => Promise<number>;
}

export interface LicenceDependencies {
  readonly stores: Pick<Stores, "system">;
  readonly runtime: Runtime;
  /** Public keys, see `licenceKey`; without one nothing can be imported. */
  readonly keys: readonly string[];
  /** True for the first tenant, whose administrators manage the other tenants. */
  readonly isFirst: (tenant: string) => Promise<boolean>;
  /** `AppError("not_found")` when there is no such tenant. */
  readonly requireTenant: (tenant: string) => Promise<void>;
  readonly hosts: HostCounts;
}

/**
 * Limits of each tenant. When a limit is reached or the licence has ended, only new hosts are refused: nothing that
 * runs stops.
 */
export class LicenceService implements Licences {
  readonly #with: LicenceDependencies;
  readonly #store: LicenceStore;
  readonly #keys: readonly KeyObject[];
  /** The last text logged for each tenant. */
  readonly #told = new Map<string, string>();

  /** `AppError("invalid")` for a key that is not valid. */
  constructor(dependencies: LicenceDependencies) {
    this.#with = dependencies;
    this.#store = new LicenceStore(dependencies.stores);
    this.#keys = dependencies.keys.map(licenceKey);
  }

  async importDocument(principal: Principal, text: string): Promise<LicenceInfo> {
    requirePermission(principal, "licences:write");
    if (!(await this.#with.isFirst(principal.tenant)))
      throw new AppError("denied", "Only administrators of the first tenant import licences.", {
        details: { permission: "licences:write" },
      });
    if (this.#keys.length === 0)
      throw new AppError("unsupported", "This installation has no key of licences: the setting license_keys names it.");
    const document = readDocument(text, this.#keys);
    await this.#with.requireTenant(document.tenant);
    if (isOver(document, this.#nowMs()))
      throw new AppError("invalid", `The licence ended on ${dayOf(document.expire)}: ask for a new one.`);
    await this.#store.put(document.tenant, { text: text.trim(), serial: document.serial });
    return this.#infoOf(document.tenant);
  }

  /** `AppError("not_found")` also for a tenant that the caller may not see. */
  async info(principal: Principal, tenant: string): Promise<LicenceInfo> {
    requirePermission(principal, "licences:read");
    if (tenant !== principal.tenant && !(await this.#with.isFirst(principal.tenant)))
      throw new AppError("not_found", `There is no tenant ${tenant.slice(0, 100)}.`);
    await this.#with.requireTenant(tenant);
    return this.#infoOf(tenant);
  }

  /** JSON of expire, server and agent, for views of a tenant. */
  async shownOf(tenant: string): Promise<string> {
    const { expire, server, agent } = (await this.#found(tenant)) ?? UNLIMITED;
    return JSON.stringify({ expire, server, agent });
  }

  /** For code that adds hosts. `AppError("denied")` if none may be added: the licence has ended or is not valid. */
  async limits(tenant: string): Promise<{ readonly agents: number; readonly servers: number }> {
    const text = await this.#store.text(tenant);
    if (text === undefined) return { agents: Infinity, servers: Infinity };
    const licence = this.#read(tenant, text);
    if (isOver(licence, this.#nowMs()))
      throw new AppError(
        "denied",
        `The licence of ${tenant} ended on ${dayOf(licence.expire)}: new hosts are refused.`,
      );
    return { agents: limitOf(licence.agent), servers: limitOf(licence.server) };
  }

  /** Logs warnings of the licence, once until they change. */
  async maintain(tenant: string): Promise<void> {
    const told = (await this.#infoOf(tenant)).warnings.join(" ");
    if (told !== "" && this.#told.get(tenant) !== told) this.#with.runtime.log.warn({ tenant }, told);
    this.#told.set(tenant, told);
  }

  /** Forgets a deleted tenant. */
  leave(tenant: string): void {
    this.#told.delete(tenant);
  }

  async *keysOf(tenant: string): AsyncGenerator<string> {
    yield await Promise.resolve(licenceKeyOf(tenant));
  }

  /** The valid document of the tenant, also one that has ended; `undefined` without one. */
  async #found(tenant: string): Promise<LicenceDocument | undefined> {
    const text = await this.#store.text(tenant);
    try {
      return text === undefined ? undefined : this.#read(tenant, text);
    } catch (error) {
      if (isAppError(error, "denied")) return undefined;
      throw error;
    }
  }

  async #infoOf(tenant: string): Promise<LicenceInfo> {
    const text = await this.#store.text(tenant);
    if (text === undefined) return { licence: { name: tenant, ...UNLIMITED }, warnings: [] };
    const found = await this.#found(tenant);
    if (!found)
      return { licence: { name: tenant, ...UNLIMITED, server: 0, agent: 0 }, warnings: [notHolding(tenant).message] };
    const { expire, server, agent, serial } = found;
    return { licence: { name: tenant, expire, server, agent, serial }, warnings: await this.#warningsOf(found) };
  }

  async #warningsOf({ tenant, expire, server, agent }: LicenceDocument): Promise<readonly string[]> {
    const { agents, servers } = this.#with.hosts;
    const warnings: string[] = [];
    const leftMs = expire - this.#nowMs();
    if (expire !== -1 && leftMs <= 0)
      warnings.push(`The licence of ${tenant} ended on ${dayOf(expire)}: new hosts are refused.`);
    else if (expire !== -1 && leftMs <= LICENCE_WARNED_DAYS * DAY_MS)
      warnings.push(`The licence of ${tenant} ends on ${dayOf(expire)}.`);
    const used = [
      { what: "hosts with an agent", most: agent, count: agent === -1 ? 0 : await agents(tenant) },
      { what: "hosts", most: server, count: server === -1 ? 0 : await servers(tenant) },
    ];
    for (const { what, most, count } of used)
      if (most !== -1 && count >= most * LICENCE_WARNED_SHARE)
        warnings.push(`${tenant} has ${count} of ${most} ${what}.`);
    return warnings;
  }

  /** `AppError("denied")` if the stored document is signed by none of the keys, or for another tenant. */
  #read(tenant: string, text: string): LicenceDocument {
    try {
      const document = readDocument(text, this.#keys);
      if (document.tenant === tenant) return document;
    } catch (error) {
      if (!isAppError(error)) throw error;
    }
    throw notHolding(tenant);
  }

  #nowMs(): number {
    return this.#with.runtime.clock.nowMs();
  }
}

function notHolding(tenant: string): AppError {
  return new AppError(
    "denied",
    `The licence of ${tenant} was signed by no key of the setting license_keys: import it anew.`,
  );
}

function isOver({ expire }: Licence, nowMs: number): boolean {
  return expire !== -1 && expire <= nowMs;
}

function limitOf(most: number): number {
  return most === -1 ? Infinity : most;
}

function dayOf(timeMs: number): string {
  const time = new Date(timeMs);
  return Number.isNaN(time.getTime()) ? `${timeMs} ms` : time.toISOString().slice(0, 10);
}
