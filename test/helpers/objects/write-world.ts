import { afterEach, beforeEach } from "vitest";
import type { Clock } from "../../../common/time.ts";
import type { Row } from "../../../common/value.ts";
import { realClock, seededRandom } from "../time/clock.ts";
import { MemoryDatabase } from "../engines/memory/engine.ts";
import { testPrincipal, testRuntime } from "../time/runtime.ts";
import { StoppableStores } from "../engines/stoppable-stores.ts";
import type { Stores } from "../../../controller/store/engine.ts";
import type { ObjectStore } from "../../../controller/store/objects.ts";
import { ObjectService, type ClassSpec, type Pushdown } from "../../../controller/areas/objects/index.ts";

/** Two controllers that write the same objects, and the calls of the first to its store. */

export const admin = testPrincipal();
export const BOX: ClassSpec = {
  path: "/matrix/box",
  columns: [
    { name: "name", type: "varchar" },
    { name: "size", type: "int" },
    { name: "ports", type: "set", elements: ["int"] },
    { name: "labels", type: "map" },
    { name: "steps", type: "list" },
    { name: "note", type: "text" },
  ],
  keys: ["name"],
};

export let objects: ObjectService;
/** Another controller, whose clock is behind. */
export let other: ObjectService;
export let store: ObjectStore;
/** A clock five seconds behind the one of `objects`. */
export let behind: Clock;
/** The stores of `objects`, whose calls are watched. */
export let watched: Stores;
/** Names of the calls that reached the store of objects. */
export let calls: string[];
/** Ends the leases of `objects`, as a long pause would. */
export let stoppable: StoppableStores;
/** Promises that calls of these names wait for before they are made. */
let before: Partial<Record<keyof ObjectStore, () => Promise<void>>>;

/** Opens both controllers for each test of the calling file. */
export function useWriters(): void {
  beforeEach(async () => {
    calls = [];
    before = {};
    const database = new MemoryDatabase(realClock);
    const engine = database.engine({ clock: realClock });
    await engine.createTenant("matrix");
    store = (await engine.tenant("matrix")).objects;
    const calling = new Proxy(store, {
      get: (target, name: keyof ObjectStore) => {
        const member = target[name];
        if (typeof member !== "function") return member;
        const call = member.bind(target) as (...given: unknown[]) => unknown;
        return (...given: unknown[]) => {
          calls.push(name);
          const wait = before[name];
          return wait ? wait().then(() => call(...given)) : call(...given);
        };
      },
    });
    watched = {
      system: () => engine.system(),
      tenant: async (name) => ({ ...(await engine.tenant(name)), objects: calling }),
    };
    let nowMs = realClock.nowMs();
    const clock = { ...realClock, nowMs: () => (nowMs += 1) };
    stoppable = new StoppableStores(watched);
    objects = new ObjectService({ stores: stoppable, runtime: { ...testRuntime(clock), random: seededRandom(1) } });
    behind = { ...clock, nowMs: () => clock.nowMs() - 5_000 };
    other = new ObjectService({ stores: engine, runtime: { ...testRuntime(behind), random: seededRandom(2) } });
    await objects.createEdgeType(admin, { name: "holds", remedy: "" });
  });
  afterEach(() => Promise.all([objects.close(), other.close()]));
}

/** Holds the next call of that name just before it is made. */
export function held(name: keyof ObjectStore): { readonly arrived: Promise<void>; goOn(): void } {
  let reached = (): void => undefined;
  let goOn = (): void => undefined;
  const arrived = new Promise<void>((resolve) => (reached = resolve));
  const opened = new Promise<void>((resolve) => (goOn = resolve));
  before[name] = () => {
    delete before[name];
    reached();
    return opened;
  };
  return { arrived, goOn: () => goOn() };
}

/** Ids of the objects that fit the condition, sorted. */
export async function found(where: Pushdown, path = BOX.path): Promise<string[]> {
  const ids: string[] = [];
  for await (const page of objects.unrestricted.read(admin, { class: path, subtree: false, where: [where] }))
    ids.push(...page.map(({ id }) => id));
  return ids.sort();
}

/** Condition that a column has that value. */
export function equal(column: string, value: string | number): Pushdown {
  return { kind: "equals", column, values: [value] };
}

/** Values of one object; `undefined` if there is none. */
export async function valuesOf(id: string): Promise<Row | undefined> {
  return (await objects.unrestricted.get(admin, [{ id }]))[0]?.values;
}

/** Ids of removed objects that still have versions, sorted. */
export async function removedOnes(): Promise<string[]> {
  const ids: string[] = [];
  for await (const page of objects.unrestricted.removed(admin, BOX.path)) ids.push(...page.map(({ id }) => id));
  return ids.sort();
}

/** Key of a BOX in the store. */
export async function keyOf(id: string) {
  const cid = (await objects.catalog(admin)).get(BOX.path)?.cid ?? 0;
  return { cid, id: id.slice("box:".length) };
}
