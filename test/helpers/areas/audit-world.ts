import { afterAll, beforeAll, beforeEach } from "vitest";
import {
  AnchorFile,
  Anchoring,
  AuditService,
  HeadStore,
  type AuditEntry,
} from "../../../controller/areas/audit/index.ts";
import { plainHashOf, type AuditRecord, type ChainKeys } from "../../../controller/areas/audit/chain.ts";
import type { Head } from "../../../controller/areas/audit/heads.ts";
import type { Stores } from "../../../controller/store/engine.ts";
import type { Runtime } from "../../../controller/runtime.ts";
import { ForgetfulFiles } from "../engines/forgetful-files.ts";
import { openTestEngine, type TestEngine } from "../engines/engine.ts";
import { MemoryTrail } from "../http/http-app.ts";
import { TEST_SECRETS, TestClock, testPrincipal, testRuntime } from "../time/runtime.ts";

export const REGISTER_KEY = "audit/heads";

export interface Controller {
  readonly audit: AuditService;
  /** Writes the newest digests to the anchor outside the store. */
  readonly anchor: () => Promise<void>;
}

export interface ControllerOptions {
  /** False: a controller of an earlier version. */
  readonly hasHeads?: boolean;
  readonly isAnchored?: boolean;
  readonly stores?: Stores;
  readonly keys?: ChainKeys;
}

/** A trail in memory whose heads are in a real store, and the controllers that write it. */
export class AuditWorld {
  readonly clock = new TestClock();
  readonly trail = new MemoryTrail();
  readonly runtime: Runtime = testRuntime(this.clock);
  readonly tenant: string;
  readonly #stores: Stores;
  readonly #disk = new ForgetfulFiles(1).boot();
  #made = 0;

  constructor(stores: Stores, tenant = "matrix") {
    this.#stores = stores;
    this.tenant = tenant;
  }

  get heads(): HeadStore {
    return new HeadStore({ stores: this.#stores, keys: TEST_SECRETS, random: this.runtime.random });
  }

  controller(options: ControllerOptions = {}): Controller {
    const { runtime, trail } = this;
    const anchoring = new Anchoring({ runtime, file: new AnchorFile("/outside/anchors", this.#disk) });
    const { stores = this.#stores, keys = TEST_SECRETS } = options;
    const heads = new HeadStore({ stores, keys, random: runtime.random });
    const audit = new AuditService({
      ...{ runtime, trail, keys },
      ...(options.isAnchored !== false && { anchoring }),
      ...(options.hasHeads !== false && { heads }),
    });
    return { audit, anchor: () => anchoring.write() };
  }

  entry(): AuditEntry {
    const action = `POST /${String(this.#made++)}`;
    const who = { tenant: this.tenant, user: "u", permission: "hosts:write", remote: "r", traceparent: "t" };
    return { ...who, action, object: "web-1", outcome: "ok", code: "ok" };
  }

  async write({ audit }: Controller, count = 1): Promise<void> {
    for (let at = 0; at < count; at++) await audit.write(this.entry());
  }

  /** Verifies the trail on a controller that has no state in memory. */
  verify({ anchored = false }: { readonly anchored?: boolean } = {}) {
    const { audit } = this.controller({ isAnchored: anchored });
    return audit.verifyChain(testPrincipal("administrator", this.tenant));
  }

  async storedHeads(): Promise<ReadonlyMap<string, Head>> {
    const { register } = await this.heads.read(this.tenant);
    if (register === undefined) return new Map();
    const { heads } = await this.heads.readPages(this.tenant, register);
    return new Map([...heads, ...register.heads].map((head) => [head.run, head]));
  }

  async version(): Promise<number> {
    return (await this.heads.read(this.tenant)).register?.version ?? 0;
  }

  /** Restores the state before the first controller that seals heads. */
  async forgetHeads(): Promise<void> {
    const kv = await this.kv();
    for (const { key } of (await kv.list("audit/")).entries) await kv.delete(key);
  }

  async kv() {
    return (await this.#stores.tenant(this.tenant)).kv;
  }
}

/** Stores that all tests of the calling file share. */
export let engine: TestEngine;
/** The trail of the running test. */
export let world: AuditWorld;
/** Returns the entries of the running test's trail, the oldest first. A test may change them. */
export const records = () => world.trail.records;

/** Opens one engine for all tests of the calling file, and a trail without heads for each. */
export function useAuditWorld(): void {
  beforeAll(async () => {
    engine = await openTestEngine();
  });
  afterAll(() => engine.close());
  beforeEach(async () => {
    world = new AuditWorld(engine);
    await world.forgetHeads();
  });
}

/** The same entries with unkeyed digests, as the first versions made them. */
export function madePlain(records: readonly AuditRecord[]): readonly AuditRecord[] {
  let previous = "0".repeat(64);
  return records.map((record) => {
    const body = { ...record, previous };
    previous = plainHashOf(body);
    return { ...body, hash: previous };
  });
}
