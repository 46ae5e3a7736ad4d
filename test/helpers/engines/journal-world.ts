import { afterAll, beforeAll } from "vitest";
import type { Clock } from "../../../common/time.ts";
import { realClock, seededRandom } from "../time/clock.ts";
import { openTestEngine, type TestEngine } from "./engine.ts";
import { uniqueName } from "../../../controller/store/contract/harness.ts";
import type { Stores } from "../../../controller/store/engine.ts";
import type { KvStore } from "../../../controller/store/kv.ts";
import { Journal, type Versioned, type OpenWork } from "../../../controller/store/journal/index.ts";

/** Counts that several controllers carry to their goal by a journal. */

/** A count that must reach `goal`; each step names its controller. Its end is recorded under `counts/<id>`. */
export interface Count extends OpenWork {
  readonly tenant: string;
  readonly goal: number;
  readonly steps: readonly string[];
  readonly end?: { readonly by: string; readonly steps: readonly string[] };
}

/** A clock whose waits end at once. */
const hasty: Clock = { ...realClock, after: (_delayMs, callback) => realClock.after(0, callback) };

interface ControllerOptions {
  readonly stores?: Stores;
  readonly clock?: Clock;
  /** The other controllers that are alive. */
  readonly sees?: () => readonly string[];
  readonly under?: string;
  readonly isRepeatable?: true;
}

/** Stores of all tests of the calling file. */
export let engine: TestEngine;
/** Key prefix of one test of this file. */
export let prefix: string;

/** Opens the stores for all tests of the calling file. */
export function useJournal(): void {
  beforeAll(async () => {
    engine = await openTestEngine();
  });
  afterAll(() => engine[Symbol.asyncDispose]());
}

/** Journal of the controller `own` under the prefix of the running test. */
export function journalOf(own: string, options: ControllerOptions = {}) {
  const { stores = engine, clock = hasty, sees, under = prefix, isRepeatable } = options;
  return new Journal<Count>(
    {
      stores,
      runtime: { clock, random: seededRandom(1) },
      controllers: { own, has: (id) => id === own || (sees?.() ?? []).includes(id) },
    },
    {
      prefix: `${under}/open/`,
      ...(isRepeatable ? { isRepeatable } : {}),
      tenantOf: ({ tenant }) => tenant,
      beside: ({ id, owner }) => [{ kind: "put", key: `${under}/owner/${id}`, value: new TextEncoder().encode(owner) }],
    },
  );
}

/** A count of the first tenant with a goal of 3, unless told otherwise. */
export const countOf = (id: string, more: Partial<Count> = {}) => ({
  id,
  tenant: "matrix",
  goal: 3,
  steps: [],
  ...more,
});

/** Gives the running test a prefix of its own. */
export function fresh(): void {
  prefix = uniqueName("journal");
}

/** Entries of work that is open in a tenant. */
export async function openIn(journal: Journal<Count>, tenant = "matrix"): Promise<readonly Versioned<Count>[]> {
  const found: Versioned<Count>[] = [];
  for await (const one of journal.all(tenant)) found.push(one);
  return found;
}

/** Entries of work whose controller is gone. */
export async function abandonedIn(journal: Journal<Count>): Promise<readonly Versioned<Count>[]> {
  const found: Versioned<Count>[] = [];
  for await (const one of journal.abandoned("matrix")) found.push(one);
  return found;
}

/** Returns a value that must be there. */
export function sure<T>(value: T | undefined): T {
  if (value === undefined) throw new Error("lost");
  return value;
}

/** Stores with other key-value stores. */
export const storesOf = (kvOf: (kv: KvStore) => KvStore, over?: Stores): Stores => ({
  system: () => engine.system(),
  tenant: async (name) => {
    const store = await (over ?? engine).tenant(name);
    return { ...store, kv: kvOf(store.kv) };
  },
});
