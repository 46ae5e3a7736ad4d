import { wait, type Clock } from "../../../common/time.ts";
import type { TenantStore } from "../../../controller/store/engine.ts";
import type { KvLease } from "../../../controller/store/kv.ts";
import type { Calls } from "./calls.ts";
import { number, readNumber } from "./numbers.ts";

const LEASE_TTL_MS = 15_000;
const MOMENT_MS = 20;

interface KeyLoadOptions {
  readonly calls: Calls;
  readonly clock: Clock;
  /** The beginning of all keys. */
  readonly place: string;
  /** False: the lease may end. */
  readonly keepsLease: boolean;
}

/** Writers and readers of keys, a watch and a lease, and what was acknowledged to them. */
export class KeyLoad {
  readonly #store: TenantStore;
  readonly #calls: Calls;
  readonly #clock: Clock;
  readonly #place: string;
  readonly #keepsLease: boolean;
  readonly #claims = new Map<string, string>();
  readonly #counters = new Map<string, { value: number; revision: number }>();
  readonly #putRevisions: number[] = [];
  readonly #plain = new Map<string, number>();
  readonly #watched: { readonly key: string; readonly revision: number }[] = [];
  readonly #watchEnd = new AbortController();
  #watch: Promise<void> = Promise.resolve();
  #lease: KvLease | undefined;

  constructor(store: TenantStore, { calls, clock, place, keepsLease }: KeyLoadOptions) {
    this.#store = store;
    this.#calls = calls;
    this.#clock = clock;
    this.#place = place;
    this.#keepsLease = keepsLease;
  }

  /** Begins to watch the counters and takes the lease. */
  async begin(): Promise<void> {
    const { revision } = await this.#calls.make("read", () => this.#store.kv.list(`${this.#place}/`));
    this.#watch = this.#follow(revision);
    this.#lease = await this.#holdLease();
  }

  /** A counter that only this worker writes. After an unknown outcome it checks if its write is stored. */
  async count(name: string): Promise<void> {
    const key = `${this.#place}/count/${name}`;
    const { value, revision } = this.#counters.get(name) ?? { value: 0, revision: 0 };
    const result = await this.#calls.make("write", () =>
      this.#store.kv.put(key, number(value + 1), { ifRevision: revision }),
    );
    const written = result.ok ? result.revision : result.current?.revision;
    if (!result.ok && (result.current === undefined || readNumber(result.current.value) !== value + 1))
      return this.#calls.complain(`${name} lost a race nobody else runs.`);
    this.#counters.set(name, { value: value + 1, revision: written ?? 0 });
    this.#putRevisions.push(written ?? 0);
  }

  /** Without a condition: an abandoned write must not take effect after a later one. */
  async overwrite(name: string, round: number): Promise<void> {
    await this.#calls.make("write", () => this.#store.kv.put(`${this.#place}/plain/${name}`, number(round)));
    this.#plain.set(name, round);
  }

  /** Two workers want the same names. Each name has one owner: exactly the worker that was told that it owns it. */
  async claim(name: string, round: number): Promise<void> {
    const key = `${this.#place}/claim/${round}`;
    const result = await this.#calls.make("write", () =>
      this.#store.kv.put(key, new TextEncoder().encode(name), { ifRevision: 0 }),
    );
    const owner = result.ok ? name : new TextDecoder().decode(result.current?.value);
    const known = this.#claims.get(key);
    if (known !== undefined && known !== owner)
      this.#calls.complain(`${key} belongs to ${known}, and ${name} was told ${owner}.`);
    this.#claims.set(key, owner);
  }

  async readCounters(): Promise<void> {
    for (const [name, { value }] of [...this.#counters]) {
      const entry = await this.#calls.make("read", () => this.#store.kv.get(`${this.#place}/count/${name}`));
      if ((readNumber(entry?.value) ?? 0) < value)
        this.#calls.complain(`${name} shows ${readNumber(entry?.value)} after ${value} was acknowledged.`);
    }
  }

  async #follow(revision: number): Promise<void> {
    try {
      for await (const events of this.#store.kv.watch(`${this.#place}/count/`, {
        sinceRevision: revision,
        signal: this.#watchEnd.signal,
      })) {
        for (const event of events)
          if (event.kind === "put") this.#watched.push({ key: event.entry.key, revision: event.entry.revision });
      }
    } catch (error) {
      this.#calls.complain(`The watch ended: ${String(error)}`);
    }
  }

  /** As a controller holds its own lease. */
  async #holdLease(): Promise<KvLease> {
    const lease = await this.#calls.make("read", () => this.#store.kv.lease(LEASE_TTL_MS));
    await this.#calls.make("write", () => this.#store.kv.put(`${this.#place}/held`, number(1), { lease: lease.id }));
    return lease;
  }

  async checkLease(): Promise<void> {
    const lease = this.#lease;
    const entry = await this.#calls.make("read", () => this.#store.kv.get(`${this.#place}/held`));
    if (this.#keepsLease && (lease?.lost.aborted || entry === undefined)) this.#calls.complain("The lease was lost.");
    // The key must not be gone for others before the lease is lost here: otherwise there would be a second owner.
    if (!lease?.lost.aborted && entry === undefined)
      this.#calls.complain("The key of a lease is gone before its holder knows.");
    await lease?.revoke().catch(() => undefined);
  }

  async checkKeys(): Promise<void> {
    for (const [key, owner] of this.#claims) {
      const entry = await this.#calls.make("read", () => this.#store.kv.get(key));
      if (new TextDecoder().decode(entry?.value) !== owner) this.#calls.complain(`${key} does not belong to ${owner}.`);
    }
    for (const [name, value] of this.#plain) {
      const entry = await this.#calls.make("read", () => this.#store.kv.get(`${this.#place}/plain/${name}`));
      if (readNumber(entry?.value) !== value)
        this.#calls.complain(`${name} is ${readNumber(entry?.value)} after ${value} was written last.`);
    }
    for (const [name, { value }] of this.#counters) {
      const entry = await this.#calls.make("read", () => this.#store.kv.get(`${this.#place}/count/${name}`));
      if (readNumber(entry?.value) !== value)
        this.#calls.complain(`${name} is ${readNumber(entry?.value)} after ${value} writes.`);
    }
  }

  /** Every acknowledged write of a counter must be reported once and in order. */
  async checkWatch(): Promise<void> {
    const newest = Math.max(0, ...this.#putRevisions);
    const end = performance.now() + 60_000;
    while ((this.#watched.at(-1)?.revision ?? 0) < newest && performance.now() < end)
      await wait(this.#clock, MOMENT_MS);
    this.#watchEnd.abort();
    await this.#watch;
    const told = this.#watched.map(({ revision }) => revision);
    const missing = this.#putRevisions.filter((revision) => !told.includes(revision));
    if (missing.length > 0)
      this.#calls.complain(`The watch left out ${missing.length} of ${this.#putRevisions.length} changes.`);
    if (new Set(told).size !== told.length || told.some((revision, index) => revision < (told[index - 1] ?? 0)))
      this.#calls.complain("The watch told changes twice or out of order.");
    if (told.length !== this.#putRevisions.length)
      this.#calls.complain(`The watch told ${told.length} changes of ${this.#putRevisions.length}.`);
  }
}
