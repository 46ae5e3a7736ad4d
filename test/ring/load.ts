import { wait, type Clock, type Random } from "../../common/time.ts";
import { uniqueCid } from "../../controller/store/contract/harness.ts";
import type { TenantStore } from "../../controller/store/engine.ts";
import { realClock } from "../helpers/time/clock.ts";
import { Calls, type Tally } from "./load/calls.ts";
import { KeyLoad } from "./load/keys.ts";
import { ObjectLoad } from "./load/objects.ts";
import { StreamLoad } from "./load/streams.ts";

export interface LoadOptions {
  readonly random: Random;
  readonly clock?: Clock;
  /** True if etcd is unavailable for so long that a lease may end. */
  readonly leaseMayEnd?: boolean;
  /** Maximum number of faults for one call while the store is expected to work. */
  readonly faultsPerCallMax: number;
}

/** Deadline for one phase of a load on a machine that does other work as well. */
const PHASE_DEADLINE_MS = 200_000;
/** Deadline for the whole load. It is before the test's own deadline, which could not say which worker is stuck. */
const LOAD_DEADLINE_MS = 270_000;
/** Maximum number of rounds that a worker may be ahead of the slowest, so that the data for readers stays bounded. */
const ROUNDS_AHEAD_MAX = 25;
/** The same while a whole seam is unavailable: its workers complete no rounds but must keep calling. */
const ROUNDS_AHEAD_OF_FAULTS_MAX = 150;
const MOMENT_MS = 20;

/**
 * Writers and readers of all three seams, each making one call after the other. A call answered with `unavailable` or
 * `unknown_outcome` is repeated, with the same write, until it succeeds. The load ends with a complaint after any other
 * fault, after a read that lacks acknowledged data, and in the soak after a call beyond its deadline.
 */
export class Load {
  readonly #clock: Clock;
  readonly #calls: Calls;
  readonly #objects: ObjectLoad;
  readonly #keys: KeyLoad;
  readonly #streams: StreamLoad;
  readonly #rounds = new Map<string, number>();
  #working: readonly Promise<void>[] = [];
  #endMs = 0;
  #ended = false;
  #roundsAheadMax = ROUNDS_AHEAD_MAX;

  constructor(store: TenantStore, options: LoadOptions) {
    const { random, clock = realClock } = options;
    const place = `load-${uniqueCid()}`;
    const calls = new Calls(options.faultsPerCallMax);
    this.#clock = clock;
    this.#calls = calls;
    this.#objects = new ObjectLoad(store, { calls, clock, random });
    this.#keys = new KeyLoad(store, { calls, clock, place, keepsLease: options.leaseMayEnd !== true });
    this.#streams = new StreamLoad(store, calls, place);
  }

  get tally(): Readonly<Tally> {
    return this.#calls.tally;
  }

  /** Faults that calls returned, for the report. */
  get faults(): readonly string[] {
    return this.#calls.faults;
  }

  async begin(): Promise<void> {
    this.#endMs = performance.now() + LOAD_DEADLINE_MS;
    await this.#keys.begin();
    const [objects, keys, streams] = [this.#objects, this.#keys, this.#streams];
    const workers: [string, (name: string, round: number) => Promise<void>][] = [
      ["entities-1", (name, round) => objects.writeEntity(name, round)],
      ["entities-2", (name, round) => objects.writeEntity(name, round)],
      ["records-1", (name) => objects.writeRecords(name)],
      ["counter-1", (name) => keys.count(name)],
      ["counter-2", (name) => keys.count(name)],
      ["claims-1", (name, round) => keys.claim(name, round)],
      ["claims-2", (name, round) => keys.claim(name, round)],
      ["plain-1", (name, round) => keys.overwrite(name, round)],
      ["stream-1", (name, round) => streams.append(name, round)],
      ["reader-1", () => objects.readEntities()],
      ["reader-2", () => objects.readTimeline().then(() => keys.readCounters())],
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
      if (this.#calls.complaints.length > 0) throw new Error(this.#calls.complaints.join("\n"));
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
    await this.#checked("entities", this.#objects.checkEntities());
    await this.#checked("records", this.#objects.checkRecords());
    await this.#checked("keys", this.#keys.checkKeys());
    await this.#checked("streams", this.#streams.check());
    await this.#checked("watch", this.#keys.checkWatch());
    await this.#checked("lease", this.#keys.checkLease());
    return this.#calls.complaints;
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
      this.#calls.complain(`${name}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
      this.#ended = true;
    }
  }

  #moment(): Promise<void> {
    return wait(this.#clock, MOMENT_MS);
  }
}
