import type { types } from "cassandra-driver";
import { afterAll, beforeAll, beforeEach, expect } from "vitest";
import { SWEEP_SETTLES_MS } from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";
import { Cassandra } from "../../../controller/store/cluster/cassandra/cassandra.ts";
import { keyspaceOf } from "../../../controller/store/cluster/schema.ts";
import { bytes, text, uniqueName } from "../../../controller/store/contract/harness.ts";
import type { EntityChange, EntityKey, ObjectStore } from "../../../controller/store/objects.ts";
import { realClock } from "../time/clock.ts";
import { clusterRuntime, clusterSettings, openTestClusterEngine, type TestClusterEngine } from "./cluster.ts";

const HOUR_MS = 3_600_000;
const SWEPT_MS = SWEEP_SETTLES_MS + HOUR_MS;

/** A random source that always chooses a sweep, so that every removed cell causes one. */
export const ALWAYS_SWEEPS = { next: () => 0, bytes: (count: number) => clusterRuntime.random.bytes(count) };

/** One object for each test on the cluster, whose removed cells are swept, and what is stored of it. */
export class SweptObject {
  engine!: TestClusterEngine;
  store!: ObjectStore;
  key!: EntityKey;
  /** Milliseconds by which the clock is ahead of the real one. */
  passedMs = 0;
  /** Milliseconds by which calls seem to take longer than they do. */
  stalledMs = 0;
  chance = ALWAYS_SWEEPS.next;
  readonly clock: Clock = {
    ...realClock,
    nowMs: () => realClock.nowMs() + this.passedMs,
    monotonicMs: () => realClock.monotonicMs() + this.stalledMs,
  };
  #cassandra: Cassandra | undefined;

  async open(): Promise<void> {
    const random = { ...ALWAYS_SWEEPS, next: () => this.chance() };
    this.engine = await openTestClusterEngine({ tenants: ["matrix"], clock: this.clock, random });
    ({ objects: this.store } = await this.engine.tenant("matrix"));
    const { cassandraContactPoints: contactPoints, cassandraDatacenter: datacenter } = clusterSettings();
    this.#cassandra = await Cassandra.connect({ contactPoints, datacenter, runtime: clusterRuntime });
  }

  async close(): Promise<void> {
    await this.#cassandra?.close();
    await this.engine?.[Symbol.asyncDispose]();
  }

  /** Begins a test with another object. */
  begin(): void {
    this.key = { cid: 1, id: uniqueName("swept") };
    this.chance = ALWAYS_SWEEPS.next;
  }

  nowUs(): number {
    return this.clock.nowMs() * 1_000;
  }

  change(timeUs: number, cells: Record<string, string | undefined>, more: object = {}): EntityChange {
    const values = Object.entries(cells).map(
      ([name, value]) => [name, value === undefined ? undefined : bytes(value)] as const,
    );
    return { key: this.key, timeUs, cells: new Map(values), ...more };
  }

  /** Values of the object by cell; undefined if it does not exist. */
  async values(): Promise<Readonly<Record<string, string>> | undefined> {
    const [entity] = await this.store.get([this.key]);
    if (entity === undefined) return undefined;
    const { cells } = entity;
    return Object.fromEntries(cells.keys.map((name) => [name, text(cells.get(name)!.value)]));
  }

  /** These columns of the row in Cassandra. */
  async stored(columns: string): Promise<types.Row | undefined> {
    const cassandra = this.#cassandra!;
    const query = `SELECT ${columns} FROM ${keyspaceOf(this.engine.prefix, "matrix")}.present WHERE cid = ? AND id = ?`;
    const [row] = await cassandra.read({ query, params: [this.key.cid, this.key.id] }, cassandra.deadline());
    return row;
  }

  /** Time of the last sweep; 0 without one. */
  async sweptUs(): Promise<number> {
    return Number((await this.stored("swept"))?.swept ?? 0);
  }

  /** Sweeps the object, after all of its writes have settled. */
  async sweep(): Promise<void> {
    this.passedMs += SWEPT_MS;
    await this.store.change([this.change(this.nowUs(), { "5/none": undefined })]);
  }

  /** Born at the returned time with `5/a`, `5/b` and `7`; `5/b` is removed ten seconds later; everything is swept. */
  async bornAndSwept(): Promise<number> {
    const bornUs = this.nowUs();
    await this.store.change([this.change(bornUs, { "5/a": "a", "5/b": "b", "7": "first" }, { birth: true })]);
    this.passedMs += 10_000;
    await this.store.change([this.change(bornUs + 10_000_000, { "5/b": undefined })]);
    await this.sweep();
    expect(await this.sweptUs()).toBeGreaterThan(bornUs + 10_000_000);
    return bornUs;
  }
}

/** An object for the tests of the calling block, opened once. */
export function useSweptObject(): SweptObject {
  const object = new SweptObject();
  beforeAll(() => object.open());
  afterAll(() => object.close());
  beforeEach(() => object.begin());
  return object;
}
