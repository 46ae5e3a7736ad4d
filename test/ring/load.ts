import { isAppError } from "../../common/errors.ts";
import { CHANGE_BATCH_MAX, STORE_CALL_DEADLINE_MS } from "../../common/limits.ts";
import { wait, type Clock, type Random } from "../../common/time.ts";
import { uniqueCid } from "../../controller/store/contract/harness.ts";
import type { TenantStore } from "../../controller/store/engine.ts";
import type { KvLease } from "../../controller/store/kv.ts";
import type { EntityKey, Page, PageRequest, StoredRecord } from "../../controller/store/objects.ts";
import { realClock } from "../helpers/time/clock.ts";
import { ARE_TIMES_BOUND } from "../helpers/time/times.ts";

/** Number of store calls by kind and by fault. */
export interface Tally {
  writes: number;
  reads: number;
  unavailable: number;
  unknown: number;
  longestMs: number;
}

export interface LoadOptions {
  readonly random: Random;
  readonly clock?: Clock;
  /** True if etcd is unavailable for so long that a lease may end. */
  readonly leaseMayEnd?: boolean;
  /** Maximum number of faults for one call while the store is expected to work. */
  readonly faultsPerCallMax: number;
}

/** Tolerance added to a promised deadline: the time in which a busy machine notices that it has passed. */
const SLACK_MS = 3_000;
const ENTITIES_PER_WRITER = 6;
const RECORDS_PER_BATCH = 10;
const STREAM_PIECE_BYTES = 512;
const LEASE_TTL_MS = 15_000;
/** Deadline for one phase of a load on a machine that does other work as well. */
const PHASE_DEADLINE_MS = 200_000;
/** Deadline for the whole load. It is before the test's own deadline, which could not say which worker is stuck. */
const LOAD_DEADLINE_MS = 270_000;
/** Maximum number of rounds that a worker may be ahead of the slowest, so that the data for readers stays bounded. */
const ROUNDS_AHEAD_MAX = 25;
/** The same while a whole seam is unavailable: its workers complete no rounds but must keep calling. */
const ROUNDS_AHEAD_OF_FAULTS_MAX = 150;
const ULID_CHARACTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/**
 * Writers and readers of all three seams, each making one call after the other. A call answered with `unavailable` or
 * `unknown_outcome` is repeated, with the same write, until it succeeds. The load ends with a complaint after any other
 * fault, after a read that lacks acknowledged data, and in the soak after a call beyond its deadline.
 */
export class Load {
  readonly tally: Tally = { writes: 0, reads: 0, unavailable: 0, unknown: 0, longestMs: 0 };
  /** Faults that calls returned, for the report. */
  readonly faults: string[] = [];
  readonly #store: TenantStore;
  readonly #random: Random;
  readonly #clock: Clock;
  readonly #keepsLease: boolean;
  readonly #repeatsMax: number;
  readonly #cid = uniqueCid();
  readonly #recordCid = uniqueCid();
  readonly #place = `load-${uniqueCid()}`;
  /** Number of acknowledged writes of each entity. */
  readonly #entities = new Map<string, { writes: number; lastUs: number }>();
  readonly #records = new Set<string>();
  readonly #claims = new Map<string, string>();
  readonly #counters = new Map<string, { value: number; revision: number }>();
  readonly #putRevisions: number[] = [];
  readonly #plain = new Map<string, number>();
  readonly #streams = new Map<string, number>();
  readonly #rounds = new Map<string, number>();
  readonly #complaints: string[] = [];
  readonly #watched: { readonly key: string; readonly revision: number }[] = [];
  readonly #watchEnd = new AbortController();
  #working: readonly Promise<void>[] = [];
  #watch: Promise<void> = Promise.resolve();
  #lease: KvLease | undefined;
  #endMs = 0;
  #ended = false;
  #roundsAheadMax = ROUNDS_AHEAD_MAX;

  constructor(store: TenantStore, options: LoadOptions) {
    this.#store = store;
    this.#random = options.random;
    this.#clock = options.clock ?? realClock;
    this.#keepsLease = options.leaseMayEnd !== true;
    this.#repeatsMax = options.faultsPerCallMax;
  }

  async begin(): Promise<void> {
    this.#endMs = performance.now() + LOAD_DEADLINE_MS;
    const { revision } = await this.#again("read", () => this.#store.kv.list(`${this.#place}/`));
    this.#watch = this.#follow(revision);
    this.#lease = await this.#holdLease();
    const workers: [string, (name: string, round: number) => Promise<void>][] = [
      ["entities-1", (name, round) => this.#writeEntity(name, round)],
      ["entities-2", (name, round) => this.#writeEntity(name, round)],
      ["records-1", (name) => this.#writeRecords(name)],
      ["counter-1", (name) => this.#count(name)],
      ["counter-2", (name) => this.#count(name)],
      ["claims-1", (name, round) => this.#claim(name, round)],
      ["claims-2", (name, round) => this.#claim(name, round)],
      ["plain-1", (name, round) => this.#overwrite(name, round)],
      ["stream-1", (name, round) => this.#appendStream(name, round)],
      ["reader-1", () => this.#readEntities()],
      ["reader-2", () => this.#readTimeline()],
    ];
    for (const [name] of workers) this.#rounds.set(name, 0);
    this.#working = workers.map(([name, work]) => this.#work(name, (round) => work(name, round)));
  }

  /** Waits until every worker has done this many further rounds. */
  async goOn(rounds: number): Promise<void> {
    const before = new Map(this.#rounds);
    const done = (): boolean => [...this.#rounds].every(([name, count]) => count - (before.get(name) ?? 0) >= rounds);
    await this.#until(`${rounds} rounds more of every worker`, done);
  }

  /** Waits until this many further calls have returned a fault. */
  async fail(faults: number): Promise<void> {
    const before = this.faults.length;
    this.#roundsAheadMax = ROUNDS_AHEAD_OF_FAULTS_MAX;
    await this.#until(`${faults} faults more`, () => this.faults.length - before >= faults);
  }

  async #until(what: string, done: () => boolean): Promise<void> {
    const began = performance.now();
    const end = Math.min(began + PHASE_DEADLINE_MS, this.#endMs);
    while (!done()) {
      if (this.#complaints.length > 0) throw new Error(this.#complaints.join("\n"));
      if (performance.now() > end)
        throw new Error(`Within ${Math.round(end - began)} ms there were not ${what}: ${this.#standing()}`);
      await this.#moment();
    }
  }

  /** Progress of every worker, to find the one that blocks the others. */
  #standing(): string {
    return `${JSON.stringify(Object.fromEntries(this.#rounds))}, ${JSON.stringify(this.tally)}, last faults: ${JSON.stringify(this.faults.slice(-5))}`;
  }

  /** Lets all workers finish, and compares the stored data with the acknowledged writes. Returns the differences. */
  async end(): Promise<readonly string[]> {
    this.#ended = true;
    let left = this.#working.length;
    await Promise.all([
      ...this.#working.map((work) => work.finally(() => void left--)),
      this.#until("an end of every worker", () => left === 0),
    ]);
    await this.#checked("entities", this.#checkEntities());
    await this.#checked("records", this.#checkRecords());
    await this.#checked("keys", this.#checkKeys());
    await this.#checked("streams", this.#checkStreams());
    await this.#checked("watch", this.#checkWatch());
    await this.#checked("lease", this.#checkLease());
    return this.#complaints;
  }

  async #checked(what: string, check: Promise<void>): Promise<void> {
    let isOver = false;
    await Promise.all([
      check.finally(() => (isOver = true)),
      this.#until(`an end of the check of ${what}`, () => isOver),
    ]);
  }

  async #work(name: string, step: (round: number) => Promise<void>): Promise<void> {
    try {
      for (let round = 0; !this.#ended; round++) {
        await step(round);
        this.#rounds.set(name, round + 1);
        while (!this.#ended && round - Math.min(...this.#rounds.values()) > this.#roundsAheadMax) await this.#moment();
      }
    } catch (error) {
      this.#complain(`${name}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
      this.#ended = true;
    }
  }

  /** Makes a call and repeats it, as every caller does. */
  async #again<T>(kind: "write" | "read", action: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const began = performance.now();
      try {
        const result = await action();
        this.tally[kind === "write" ? "writes" : "reads"]++;
        return result;
      } catch (error) {
        if (!isAppError(error, "unavailable", "unknown_outcome") || attempt > this.#repeatsMax) throw error;
        if (isAppError(error, "unknown_outcome") && kind === "read") throw error;
        this.tally[isAppError(error, "unavailable") ? "unavailable" : "unknown"]++;
        this.faults.push(`${kind}: ${error.code}: ${error.message}`);
      } finally {
        const tookMs = performance.now() - began;
        this.tally.longestMs = Math.max(this.tally.longestMs, Math.round(tookMs));
        if (ARE_TIMES_BOUND && tookMs > STORE_CALL_DEADLINE_MS + SLACK_MS)
          this.#complain(`A ${kind} took ${Math.round(tookMs)} ms.`);
      }
    }
  }

  async #writeEntity(name: string, round: number): Promise<void> {
    const key = { cid: this.#cid, id: `${name}-${round % ENTITIES_PER_WRITER}` };
    const known = this.#entities.get(key.id);
    const timeUs = Math.max(this.#clock.nowMs() * 1_000, (known?.lastUs ?? 0) + 1);
    const writes = known?.writes ?? 0;
    const cells = new Map([
      ["1", number(writes)],
      [`2/${writes}`, number(writes)],
    ]);
    const birth = known === undefined ? ({ birth: true } as const) : {};
    await this.#again("write", () =>
      this.#store.objects.change([
        { key, timeUs, ...birth, cells, addTerms: [`c${this.#cid}`], version: number(writes) },
      ]),
    );
    this.#entities.set(key.id, { writes: writes + 1, lastUs: timeUs });
  }

  async #writeRecords(name: string): Promise<void> {
    const records = Array.from(
      { length: RECORDS_PER_BATCH },
      (): StoredRecord => ({ cid: this.#recordCid, id: this.#ulid(), value: number(1), terms: [name] }),
    );
    await this.#again("write", () => this.#store.objects.append(records));
    for (const record of records) this.#records.add(record.id);
  }

  /** A counter that only this worker writes. After an unknown outcome it checks if its write is stored. */
  async #count(name: string): Promise<void> {
    const key = `${this.#place}/count/${name}`;
    const { value, revision } = this.#counters.get(name) ?? { value: 0, revision: 0 };
    const result = await this.#again("write", () =>
      this.#store.kv.put(key, number(value + 1), { ifRevision: revision }),
    );
    const written = result.ok ? result.revision : result.current?.revision;
    if (!result.ok && (result.current === undefined || readNumber(result.current.value) !== value + 1))
      return this.#complain(`${name} lost a race nobody else runs.`);
    this.#counters.set(name, { value: value + 1, revision: written ?? 0 });
    this.#putRevisions.push(written ?? 0);
  }

  /** Without a condition: an abandoned write must not take effect after a later one. */
  async #overwrite(name: string, round: number): Promise<void> {
    await this.#again("write", () => this.#store.kv.put(`${this.#place}/plain/${name}`, number(round)));
    this.#plain.set(name, round);
  }

  /** Two workers want the same names. Each name has one owner: exactly the worker that was told that it owns it. */
  async #claim(name: string, round: number): Promise<void> {
    const key = `${this.#place}/claim/${round}`;
    const result = await this.#again("write", () =>
      this.#store.kv.put(key, new TextEncoder().encode(name), { ifRevision: 0 }),
    );
    const owner = result.ok ? name : new TextDecoder().decode(result.current?.value);
    const known = this.#claims.get(key);
    if (known !== undefined && known !== owner)
      this.#complain(`${key} belongs to ${known}, and ${name} was told ${owner}.`);
    this.#claims.set(key, owner);
  }

  async #appendStream(name: string, round: number): Promise<void> {
    const stream = `${this.#place}/${name}`;
    const offset = round * STREAM_PIECE_BYTES;
    await this.#again("write", () => this.#store.blobs.append(stream, offset, piece(round)));
    this.#streams.set(stream, offset + STREAM_PIECE_BYTES);
  }

  /** Reads entities by the index, then by key. */
  async #readEntities(): Promise<void> {
    const expected = [...this.#entities.keys()];
    const found = new Set<string>();
    for await (const entity of this.#pages((page) => this.#store.objects.find({ terms: [`c${this.#cid}`] }, page)))
      found.add(entity.key.id);
    const missing = expected.filter((id) => !found.has(id));
    if (missing.length > 0) this.#complain(`The index does not find ${missing.join(", ")}.`);
    const known = [...this.#entities].map(([id, { writes }]) => ({ id, writes }));
    const entities = await this.#again("read", () =>
      this.#store.objects.get(known.map(({ id }): EntityKey => ({ cid: this.#cid, id }))),
    );
    known.forEach(({ id, writes }, index) => {
      const seen = readNumber(entities[index]?.cells.get("1")?.value);
      if (seen === undefined || seen < writes - 1)
        this.#complain(`${id} shows ${seen} after ${writes - 1} was acknowledged.`);
    });
  }

  async #readTimeline(): Promise<void> {
    const expected = new Set(this.#records);
    const request = { cid: this.#recordCid, fromMs: 0, toMs: this.#clock.nowMs() + 60_000, terms: ["records-1"] };
    const page = await this.#again("read", () => this.#store.objects.timeline(request, { limit: 50 }));
    const newest = [...expected].sort().reverse().slice(0, page.items.length);
    const oldest = page.items.at(-1)?.id ?? "";
    const missing = newest.filter((id) => id > oldest && !page.items.some((record) => record.id === id));
    if (missing.length > 0) this.#complain(`The timeline lacks ${missing.length} records.`);
    for (const [name, { value }] of [...this.#counters]) {
      const entry = await this.#again("read", () => this.#store.kv.get(`${this.#place}/count/${name}`));
      if ((readNumber(entry?.value) ?? 0) < value)
        this.#complain(`${name} shows ${readNumber(entry?.value)} after ${value} was acknowledged.`);
    }
  }

  async *#pages<T>(read: (page: PageRequest) => Promise<Page<T>>): AsyncGenerator<T> {
    let cursor: string | undefined;
    do {
      const request: PageRequest =
        cursor === undefined ? { limit: CHANGE_BATCH_MAX } : { limit: CHANGE_BATCH_MAX, cursor };
      const page = await this.#again("read", () => read(request));
      yield* page.items;
      cursor = page.cursor;
    } while (cursor !== undefined);
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
      this.#complain(`The watch ended: ${String(error)}`);
    }
  }

  /** As a controller holds its own lease. */
  async #holdLease(): Promise<KvLease> {
    const lease = await this.#again("read", () => this.#store.kv.lease(LEASE_TTL_MS));
    await this.#again("write", () => this.#store.kv.put(`${this.#place}/held`, number(1), { lease: lease.id }));
    return lease;
  }

  async #checkLease(): Promise<void> {
    const lease = this.#lease;
    const entry = await this.#again("read", () => this.#store.kv.get(`${this.#place}/held`));
    if (this.#keepsLease && (lease?.lost.aborted || entry === undefined)) this.#complain("The lease was lost.");
    // The key must not be gone for others before the lease is lost here: otherwise there would be a second owner.
    if (!lease?.lost.aborted && entry === undefined)
      this.#complain("The key of a lease is gone before its holder knows.");
    await lease?.revoke().catch(() => undefined);
  }

  async #checkEntities(): Promise<void> {
    for (const [id, { writes }] of this.#entities) {
      const key = { cid: this.#cid, id };
      const [entity] = await this.#again("read", () => this.#store.objects.get([key]));
      const elements = [...(entity?.cells.keys ?? [])].filter((cell) => cell.startsWith("2/")).length;
      if (readNumber(entity?.cells.get("1")?.value) !== writes - 1 || elements !== writes)
        this.#complain(`${id} has ${elements} of ${writes} elements.`);
      let versions = 0;
      for await (const version of this.#pages((page) => this.#store.objects.history(key, {}, page)))
        versions += version.value.length > 0 ? 1 : 0;
      if (versions !== writes) this.#complain(`${id} has ${versions} versions of ${writes} writes.`);
    }
  }

  async #checkRecords(): Promise<void> {
    const request = { cid: this.#recordCid, fromMs: 0, toMs: this.#clock.nowMs() + 60_000 };
    const found: string[] = [];
    for await (const record of this.#pages((page) => this.#store.objects.timeline(request, page)))
      found.push(record.id);
    const missing = [...this.#records].filter((id) => !found.includes(id));
    if (missing.length > 0 || found.length !== this.#records.size)
      this.#complain(`Of ${this.#records.size} records ${missing.length} are missing and ${found.length} are found.`);
  }

  async #checkKeys(): Promise<void> {
    for (const [key, owner] of this.#claims) {
      const entry = await this.#again("read", () => this.#store.kv.get(key));
      if (new TextDecoder().decode(entry?.value) !== owner) this.#complain(`${key} does not belong to ${owner}.`);
    }
    for (const [name, value] of this.#plain) {
      const entry = await this.#again("read", () => this.#store.kv.get(`${this.#place}/plain/${name}`));
      if (readNumber(entry?.value) !== value)
        this.#complain(`${name} is ${readNumber(entry?.value)} after ${value} was written last.`);
    }
    for (const [name, { value }] of this.#counters) {
      const entry = await this.#again("read", () => this.#store.kv.get(`${this.#place}/count/${name}`));
      if (readNumber(entry?.value) !== value)
        this.#complain(`${name} is ${readNumber(entry?.value)} after ${value} writes.`);
    }
  }

  async #checkStreams(): Promise<void> {
    for (const [stream, size] of this.#streams) {
      for (let offset = 0; offset < size; offset += STREAM_PIECE_BYTES) {
        const part = await this.#again("read", () => this.#store.blobs.readStream(stream, offset, STREAM_PIECE_BYTES));
        if (part.size !== size || Buffer.compare(part.bytes, piece(offset / STREAM_PIECE_BYTES)) !== 0)
          return this.#complain(`${stream} differs at ${offset}, ${part.size} of ${size} bytes.`);
      }
    }
  }

  /** Every acknowledged write of a counter must be reported once and in order. */
  async #checkWatch(): Promise<void> {
    const newest = Math.max(0, ...this.#putRevisions);
    const end = performance.now() + 60_000;
    while ((this.#watched.at(-1)?.revision ?? 0) < newest && performance.now() < end) await this.#moment();
    this.#watchEnd.abort();
    await this.#watch;
    const told = this.#watched.map(({ revision }) => revision);
    const missing = this.#putRevisions.filter((revision) => !told.includes(revision));
    if (missing.length > 0)
      this.#complain(`The watch left out ${missing.length} of ${this.#putRevisions.length} changes.`);
    if (new Set(told).size !== told.length || told.some((revision, index) => revision < (told[index - 1] ?? 0)))
      this.#complain("The watch told changes twice or out of order.");
    if (told.length !== this.#putRevisions.length)
      this.#complain(`The watch told ${told.length} changes of ${this.#putRevisions.length}.`);
  }

  #moment(): Promise<void> {
    return wait(this.#clock, 20);
  }

  #ulid(): string {
    let rest = this.#clock.nowMs();
    let time = "";
    for (let i = 0; i < 10; i++) {
      time = `${ULID_CHARACTERS[rest % 32] ?? ""}${time}`;
      rest = Math.floor(rest / 32);
    }
    return time + Array.from({ length: 16 }, () => ULID_CHARACTERS[Math.floor(this.#random.next() * 32)]).join("");
  }

  #complain(text: string): void {
    this.#complaints.push(text);
  }
}

function number(value: number): Uint8Array {
  return new TextEncoder().encode(String(value));
}

function readNumber(bytes: Uint8Array | undefined): number | undefined {
  return bytes === undefined ? undefined : Number(new TextDecoder().decode(bytes));
}

function piece(index: number): Uint8Array {
  return new Uint8Array(STREAM_PIECE_BYTES).fill(index % 251);
}
