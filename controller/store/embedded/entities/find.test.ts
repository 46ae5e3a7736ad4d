import { rm } from "node:fs/promises";
import { basename } from "node:path";
import { expect, test } from "vitest";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { storeFolder } from "../../../../test/helpers/runs/folders.ts";
import { testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { Cursors } from "../cursor.ts";
import { ReadTurns } from "../environment/read-turns.ts";
import { openTenant } from "../tenant.ts";

test("a cursor of a find in no order has the form of earlier versions, by which a stored index fill goes on", async () => {
  const folder = await storeFolder("odp-find-");
  const store = await openTenant(folder, { runtime: testRuntime(realClock), turns: new ReadTurns(realClock) });
  try {
    const ids = ["a", "b", "c"];
    await store.objects.change(ids.map((id) => ({ key: { cid: 1, id }, timeUs: 10, birth: true, addTerms: ["t"] })));
    const page = async (cursor?: string) => {
      const { items, cursor: next } = await store.objects.find(
        { terms: ["t"] },
        { limit: 1, ...(cursor === undefined ? {} : { cursor }) },
      );
      return { ids: items.map(({ key }) => key.id), next };
    };
    const former = new Cursors([basename(folder), "find", ["t"], [], null]);
    const place = former.read({ limit: 1, cursor: (await page()).next ?? "" });
    expect(await page(former.write(place ?? new Uint8Array()))).toMatchObject({ ids: ["b"] });
  } finally {
    await store.close();
    await rm(folder, { recursive: true, force: true });
  }
});
