import { afterAll, beforeAll } from "vitest";
import { realClock } from "../time/clock.ts";
import { onCluster, openTestEngine, type TestEngine } from "../engines/engine.ts";
import { testPrincipal, testRuntime } from "../time/runtime.ts";
import { ObjectService, type ClassSpec } from "../../../controller/areas/objects/index.ts";

/** Tenants whose controllers write the same objects at the same time. */

/** Histories of one tenant come one after the other, so that a seed alone replays each. */
export const LANES = (onCluster ? ["matrix", "second"] : ["matrix", "second", "third", "fourth"]).map((tenant) => ({
  tenant,
  admin: testPrincipal("administrator", tenant),
  path: `/${tenant}/race`,
}));
export type Lane = (typeof LANES)[number];

const RACE: Omit<ClassSpec, "path"> = {
  columns: [
    { name: "a", type: "int" },
    { name: "b", type: "varchar" },
    { name: "one", type: "text" },
    { name: "two", type: "text" },
    { name: "s", type: "set", elements: ["int"] },
    { name: "m", type: "map" },
  ],
  indexes: ["a", "b", "s", "m"],
  options: { keyMode: "manu", autosearch: true },
};

/** Stores of all tests of the calling file. */
export let engine: TestEngine;

/** Opens the stores, with a class in each lane, for all tests of the calling file. */
export function useRaces(): void {
  beforeAll(async () => {
    engine = await openTestEngine();
    const service = new ObjectService({ stores: engine, runtime: testRuntime(realClock) });
    for (const { tenant, admin, path } of LANES) {
      await engine.createTenant(tenant);
      await service.createEdgeType(admin, { name: "knows", remedy: "" });
      await service.createClass(admin, { ...RACE, path });
    }
    await service.close();
  });
  afterAll(() => engine[Symbol.asyncDispose]());
}
