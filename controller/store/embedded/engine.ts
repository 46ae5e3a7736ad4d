import { readdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { AppError } from "../../../common/errors.ts";
import { isThere, makeFolder, nodeFiles, syncFolder } from "../../files.ts";
import type { DataNode, Engine, Readiness, TenantStore } from "../engine.ts";
import { lockFolder } from "./environment/lock.ts";
import { ReadTurns } from "./environment/read-turns.ts";
import type { EmbeddedRuntime } from "./runtime.ts";
import { openTenant, requireStore, type EmbeddedTenant } from "./tenant.ts";

export interface EmbeddedOptions {
  /** The data folder; created if it is missing. */
  readonly dir: string;
  readonly runtime: EmbeddedRuntime;
}

const TENANT_NAME = /^[a-z][a-z0-9_]{0,47}$/;
/** Suffix of a removed tenant's folder until it is deleted. No tenant's name has a dot. */
const DOOMED = ".dropped";

/** `AppError("conflict")` if another controller uses the same folder. */
export async function openEmbeddedEngine(options: EmbeddedOptions): Promise<EmbeddedEngine> {
  const tenants = join(options.dir, "tenants");
  await makeFolder(nodeFiles, tenants);
  const unlock = lockFolder(options.dir, options.runtime.clock.nowMs());
  try {
    for (const name of await readdir(tenants)) {
      if (name.endsWith(DOOMED)) await rm(join(tenants, name), { recursive: true, force: true });
    }
    const engine = new EmbeddedEngine(options, unlock);
    // The system store is created first, so it must exist if tenants exist.
    if ((await readdir(tenants)).length > 0) await requireStore(join(options.dir, "system"));
    await engine.system();
    return engine;
  } catch (error) {
    unlock();
    throw error;
  }
}

/**
 * All data in one folder, used by one process: `system` and `tenants/<name>`, each with its LMDB environment and its
 * files.
 */
export class EmbeddedEngine implements Engine {
  readonly kind = "embedded";
  readonly isRemote = false;
  readonly #options: EmbeddedOptions;
  /** The stores of all tenants share the thread. */
  readonly #turns: ReadTurns;
  readonly #unlock: () => void;
  readonly #open = new Map<string, Promise<EmbeddedTenant>>();
  #closed = false;

  constructor(options: EmbeddedOptions, unlock: () => void) {
    this.#options = options;
    this.#turns = new ReadTurns(options.runtime.clock);
    this.#unlock = unlock;
  }

  system(): Promise<TenantStore> {
    return this.#opened(join(this.#options.dir, "system"));
  }

  async tenant(name: string): Promise<TenantStore> {
    const folder = this.#folder(name);
    if (this.#open.has(folder)) return this.#opened(folder);
    if (!(await isThere(nodeFiles, folder))) throw new AppError("not_found", `There is no tenant ${name}.`);
    await requireStore(folder);
    return this.#opened(folder);
  }

  /** Creates the whole store now: if it is missing later, it was lost. */
  async createTenant(name: string): Promise<void> {
    await this.#opened(this.#folder(name));
  }

  async dropTenant(name: string): Promise<void> {
    const folder = this.#folder(name);
    await this.releaseTenant(name);
    if (!(await isThere(nodeFiles, folder))) return;
    // Renamed first: a crash during the deletion leaves nothing that looks like a tenant.
    await rm(folder + DOOMED, { recursive: true, force: true });
    await rename(folder, folder + DOOMED);
    await syncFolder(nodeFiles, dirname(folder));
    await rm(folder + DOOMED, { recursive: true, force: true });
  }

  async releaseTenant(name: string): Promise<void> {
    const folder = this.#folder(name);
    const opened = this.#open.get(folder);
    this.#open.delete(folder);
    await (await opened)?.close();
  }

  async nodes(): Promise<readonly DataNode[]> {
    return [{ datacenter: "local", hostid: "embedded", isup: true, peer: "127.0.0.1", port: 0, rack: "local" }];
  }

  /** Never reports a lost tenant: missing files of a tenant are detected when its store is opened. */
  async ready(): Promise<Readiness> {
    await (await this.system()).kv.get("ready");
    return { lost: [] };
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    const opened = await Promise.allSettled(this.#open.values());
    for (const result of opened) if (result.status === "fulfilled") await result.value.close();
    this.#unlock();
  }

  #folder(name: string): string {
    if (!TENANT_NAME.test(name))
      throw new AppError(
        "invalid",
        `A tenant's name is 1 to 48 lower-case letters, digits and underscores, not ${JSON.stringify(name)}.`,
      );
    return join(this.#options.dir, "tenants", name);
  }

  #opened(folder: string): Promise<EmbeddedTenant> {
    if (this.#closed) return Promise.reject(new AppError("unavailable", "The store is closed."));
    const known = this.#open.get(folder);
    if (known !== undefined) return known;
    const opening = openTenant(folder, { runtime: this.#options.runtime, turns: this.#turns });
    this.#open.set(folder, opening);
    opening.catch(() => this.#open.delete(folder));
    return opening;
  }
}
