import { setImmediate } from "node:timers/promises";
import type { Random } from "../../../common/time.ts";
import { AppError } from "../../../common/errors.ts";
import type { Stores, TenantStore } from "../../../controller/store/engine.ts";
import type { ObjectStore } from "../../../controller/store/objects.ts";

/** Probability that a completed write gets an unknown outcome. `ECHO_RATE`: that it is executed again later. */
const LOST_ANSWER_RATE = 0.05;
const ECHO_RATE = 0.1;

/**
 * Lets the calls of several writers through one at a time, in an order that a seed determines. Each call waits for its
 * turn before it reaches the store, so any other call may come before it.
 */
export class Interleaving {
  readonly #random: Random;
  readonly #waiting: (() => Promise<void>)[] = [];
  #echoes: (() => Promise<void>)[] = [];
  /** Number of calls that went through. */
  steps = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  call<T>(action: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#waiting.push(async () => {
        try {
          resolve(await action());
        } catch (error) {
          reject(error as Error);
        }
      });
    });
  }

  /** Calls `check` first, but only for the original call and not for its echo. */
  write(action: () => Promise<void>, check: () => void): Promise<void> {
    return this.call(async () => {
      check();
      await action();
      if (this.#random.next() < ECHO_RATE) this.#echoes.push(action);
      if (this.#random.next() < LOST_ANSWER_RATE)
        throw new AppError("unknown_outcome", "The answer was lost (a fault on purpose).");
    });
  }

  /** Starts each operation at a random moment, and ends when all have ended. */
  async run(operations: readonly (() => Promise<void>)[]): Promise<void> {
    const open = [...operations];
    let running = 0;
    while (open.length + running > 0) {
      // Lets every participant continue that does not wait for the store.
      await setImmediate();
      await setImmediate();
      const place = Math.floor(this.#random.next() * (this.#waiting.length + (open.length > 0 ? 1 : 0)));
      const next = this.#waiting[place];
      if (next === undefined) {
        const start = open.shift();
        if (start === undefined) continue;
        running++;
        void start().finally(() => running--);
        continue;
      }
      this.#waiting.splice(place, 1);
      this.steps++;
      await next();
      if (this.#echoes.length > 0 && this.#random.next() < 0.3) await this.#echo();
    }
    while (this.#echoes.length > 0) await this.#echo();
  }

  async #echo(): Promise<void> {
    const [echo, ...rest] = this.#echoes;
    this.#echoes = rest;
    await echo?.();
  }
}

/** The same stores with object calls in turns, and none after `callsMax`. Definitions and queries are not delayed. */
export function interleaved(stores: Stores, turns: Interleaving, callsMax = Infinity): Stores {
  const wrap = (store: TenantStore): TenantStore => ({
    ...store,
    objects: byTurns(store.objects, turns, callsMax),
  });
  return { system: () => stores.system(), tenant: async (name) => wrap(await stores.tenant(name)) };
}

function byTurns(objects: ObjectStore, turns: Interleaving, callsMax: number): ObjectStore {
  let calls = 0;
  const count = (): void => {
    if (++calls > callsMax) throw new AppError("unavailable", "This writer is gone (on purpose).");
  };
  const write = (action: () => Promise<void>): Promise<void> => turns.write(action, count);
  const read = <T>(action: () => Promise<T>): Promise<T> =>
    turns.call(async () => {
      count();
      return action();
    });
  return {
    change: (changes) => write(() => objects.change(changes)),
    get: (keys) => read(() => objects.get(keys)),
    trace: (keys) => read(() => objects.trace(keys)),
    edges: (key, direction, page) => read(() => objects.edges(key, direction, page)),
    find: (request, page) => objects.find(request, page),
    estimate: (request) => objects.estimate(request),
    countClass: (term, cursor) => objects.countClass(term, cursor),
    countRecords: (span, cursor) => objects.countRecords(span, cursor),
    terms: (request, page) => objects.terms(request, page),
    scan: (page) => objects.scan(page),
    history: (key, range, page) => objects.history(key, range, page),
    append: (records) => write(() => objects.append(records)),
    timeline: (request, page) => objects.timeline(request, page),
    getRecords: (keys) => read(() => objects.getRecords(keys)),
    removeRecords: (keys) => write(() => objects.removeRecords(keys)),
  };
}
