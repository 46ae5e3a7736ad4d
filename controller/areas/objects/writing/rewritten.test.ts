import { expect, test } from "vitest";
import { openTestEngine } from "../../../../test/helpers/engine.ts";
import { TestClock, testPrincipal, testRuntime } from "../../../../test/helpers/runtime.ts";
import { ObjectService } from "../index.ts";

const admin = testPrincipal();

test("a record is removed and written anew as often as one likes within a millisecond", async () => {
  const clock = new TestClock();
  await using engine = await openTestEngine({ clock });
  const objects = new ObjectService({ stores: engine, runtime: testRuntime(clock) });
  const path = "/matrix/line";
  await objects.createClass(admin, { path, kind: "record", columns: [{ name: "n", type: "int" }] });
  const [id = ""] = await objects.insert(admin, path, [{ n: 0 }]);
  const unstored: unknown[] = [];
  for (let n = 0; n < 20; n += 1) {
    await objects.remove(admin, [{ id }]);
    await objects.insert(admin, path, [{ id, n }], { rewrites: true, unstored: (rows) => unstored.push(...rows) });
    expect(await objects.get(admin, [{ id }])).toMatchObject([{ values: { n } }]);
  }
  expect(unstored).toEqual([]);
  await objects.close();
});
