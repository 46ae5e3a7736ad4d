import { describe, expect, test } from "vitest";
import { onCluster } from "../../../test/helpers/engines/engine.ts";
import { AGED_CHANGES } from "../../../test/helpers/time/times.ts";
import {
  admin,
  appcontext,
  useAppcontext,
  all,
  create,
  counting,
} from "../../../test/helpers/areas/appcontext-world.ts";

useAppcontext();

const AGED = onCluster ? 300 : AGED_CHANGES;
const AT_ONCE = 100;

/** Makes `count` calls, `AT_ONCE` at a time. */
async function many(count: number, call: (at: number) => Promise<unknown>): Promise<void> {
  for (let from = 0; from < count; from += AT_ONCE)
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, count - from) }, (_, at) => call(from + at)));
}

describe("with age", () => {
  test("a variable and an item that were changed very often are one entry each", async () => {
    const id = await create("changed", { n: -1 });
    await many(AGED, async (n) => {
      await appcontext.setVariable(admin, { key: "changed", text: `text ${n}` });
      await appcontext.replace(admin, { collection: "changed", id, text: `{"n":${n}}` });
    });
    await appcontext.setVariable(admin, { key: "changed", text: "last" });
    await appcontext.replace(admin, { collection: "changed", id, text: '{"n":"last"}' });
    const { service, counts } = counting();
    expect(await service.variable(admin, "changed")).toBe("last");
    expect(await all(service, { collection: "changed" })).toEqual([{ id, n: "last" }]);
    expect(counts).toMatchObject({ get: 1, found: 1 });
    expect(counts.find).toBeLessThanOrEqual(2);
  });

  test("a collection in which very many items have expired is read as one that never had them", async () => {
    const stays = await create("expired", { n: "stays" });
    await many(AGED, (n) => create("expired", { n }, 3_600));
    const { service, counts } = counting(3_601_000);
    expect(await all(service, { collection: "expired" })).toEqual([{ id: stays, n: "stays" }]);
    expect(counts.found).toBe(1);
    // Pages of the embedded engine also pass over entries of other collections in this test.
    expect(counts.find).toBeLessThanOrEqual(onCluster ? 2 : 10);
  });
});
