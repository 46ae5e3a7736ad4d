import { rm } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import { realClock, seededRandom } from "../../../test/helpers/time/clock.ts";
import { openTestEngine } from "../../../test/helpers/engines/engine.ts";
import { testRuntime } from "../../../test/helpers/time/runtime.ts";
import { openEmbeddedEngine } from "../../store/embedded/index.ts";
import { storeFolder } from "../../../test/helpers/runs/folders.ts";
import {
  admin,
  appcontext,
  useAppcontext,
  serviceAt,
  all,
  create,
  storesWith,
} from "../../../test/helpers/areas/appcontext-world.ts";

useAppcontext();

describe("with a store that fails", () => {
  test("a write whose answer was lost is made once, and answered", async () => {
    let lost = 0;
    const stores = storesWith((objects) => ({
      change: async (changes) => {
        await objects.change(changes);
        if (lost++ < 2) throw new AppError("unknown_outcome", "The answer was lost.");
      },
    }));
    const { id } = await serviceAt(0, stores).create(admin, { collection: "lost", text: '{"n":1}' });
    expect(lost).toBe(3);
    expect(await all(appcontext, { collection: "lost" })).toEqual([{ id, n: 1 }]);
  });

  test("on a folder of its own, what was answered is there after a restart", async () => {
    const dir = await storeFolder("odp-appcontext-");
    const open = () => openEmbeddedEngine({ dir, runtime: testRuntime(realClock) });
    const before = await open();
    await before.createTenant("matrix");
    await serviceAt(0, before).setVariable(admin, { key: "kept", text: "kept", ttlSeconds: 3_600 });
    const { id } = await serviceAt(0, before).create(admin, { collection: "kept", text: '{"n":1}', ttlSeconds: 60 });
    await before.close();
    const after = await open();
    expect(await serviceAt(0, after).variable(admin, "kept")).toBe("kept");
    expect(await all(serviceAt(0, after), { collection: "kept" })).toEqual([{ id, n: 1 }]);
    expect(await all(serviceAt(61_000, after), { collection: "kept" })).toEqual([]);
    await after.close();
    await rm(dir, { recursive: true });
  });

  test("that stays away, a call fails by that name", async () => {
    const away = (): Promise<never> => Promise.reject(new AppError("unavailable", "away"));
    const service = serviceAt(
      0,
      storesWith(() => ({ get: away, trace: away, find: away })),
    );
    await expect(service.variable(admin, "v")).rejects.toMatchObject({ code: "unavailable" });
    await expect(service.setVariable(admin, { key: "v", text: "" })).rejects.toMatchObject({ code: "unavailable" });
    await expect(all(service, { collection: "c" })).rejects.toMatchObject({ code: "unavailable" });
  });

  test("removing all items is repeated until it is done", async () => {
    for (let n = 0; n < 600; n++) await create("emptied", { n });
    let calls = 0;
    const stores = storesWith((objects) => ({
      change: (changes) => {
        calls += 1;
        return calls > 1 && calls < 9 ? Promise.reject(new AppError("unavailable", "away")) : objects.change(changes);
      },
    }));
    const service = serviceAt(0, stores);
    await expect(service.removeItems(admin, "emptied")).rejects.toMatchObject({ code: "unavailable" });
    expect((await all(appcontext, { collection: "emptied" })).length).toBeLessThan(600);
    await service.removeItems(admin, "emptied");
    expect(await all(appcontext, { collection: "emptied" })).toEqual([]);
  });

  test.each([1, 2, 3])("everything is as the answered calls left it (seed %i)", async (seed) => {
    await using nasty = await openTestEngine({ faultySeed: seed });
    const random = seededRandom(seed);
    const below = (end: number): number => Math.floor(random.next() * end);
    const service = serviceAt(0, nasty);
    const model = new Map<string, number>();
    const ids = Array.from({ length: 20 }, (_, at) => `id${at}`);
    for (let round = 0; round < 100; round++) {
      const id = ids[below(ids.length)] ?? "";
      const item = { collection: "model", id, text: `{"n":${round}}` };
      if (below(30) === 0) {
        await untilDone(() => service.removeItems(admin, "model"));
        model.clear();
      } else if (below(4) === 0) {
        await untilDone(() => service.removeItem(admin, "model", id));
        model.delete(id);
      } else {
        await untilDone(() => service.put(admin, item));
        model.set(id, round);
      }
      const read = await untilDone(() => all(service, { collection: "model" }));
      expect(new Map(read.map((one) => [one.id, one["n"]])), `seed ${seed} round ${round}`).toEqual(model);
    }
  });
});

async function untilDone<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof AppError) || !["unavailable", "unknown_outcome"].includes(error.code)) throw error;
    }
  }
}
