import { expect, test } from "vitest";
import { realClock } from "../../../../../test/helpers/time/clock.ts";
import { openTestEngine } from "../../../../../test/helpers/engines/engine.ts";
import { TestClock, testPrincipal, testRuntime } from "../../../../../test/helpers/time/runtime.ts";
import { ObjectService } from "../../index.ts";

const admin = testPrincipal();

const LINE = { path: "/matrix/line", kind: "record", columns: [{ name: "n", type: "int" }] } as const;

test("a record that is written anew as it is stored keeps its time, so that it does not outlast a later removal", async () => {
  await using engine = await openTestEngine();
  const objects = new ObjectService({ stores: engine, runtime: testRuntime(realClock) });
  await objects.createClass(admin, LINE);
  const cid = (await objects.catalog(admin)).get(LINE.path)?.cid ?? 0;
  const [id = ""] = await objects.unrestricted.insert(admin, LINE.path, [{ n: 0 }]);
  const times: unknown[] = [];
  for (const n of [0, 1, 1, 2]) {
    await objects.unrestricted.insert(admin, LINE.path, [{ id, n }], { rewrites: true });
    const { objects: store } = await engine.tenant("matrix");
    times.push((await store.getRecords([{ cid, id: id.slice(id.indexOf(":") + 1) }]))[0]?.rewrittenUs ?? 0);
  }
  expect(times[0]).toBe(0);
  expect(times[1]).toBe(times[2]);
  expect(Number(times[3])).toBeGreaterThan(Number(times[2]));
  await objects.close();
});

test("a row is reported as removed or ended from the very time on", async () => {
  const clock = new TestClock();
  await using engine = await openTestEngine({ clock });
  const objects = new ObjectService({ stores: engine, runtime: testRuntime(clock) });
  const path = "/matrix/box";
  const columns = [{ name: "name", type: "varchar" as const }];
  await objects.createClass(admin, { path, columns, keys: ["name"] });
  await objects.createClass(admin, { path: "/matrix/brief", columns, keys: ["name"], options: { ttlSeconds: 60 } });
  const reported: unknown[] = [];
  const unstored = (rows: readonly unknown[]): void => void reported.push(...rows);
  await objects.unrestricted.insert(admin, path, [{ name: "a" }]);
  clock.advance(1_000);
  await objects.unrestricted.remove(admin, [{ id: "box:a" }]);
  await objects.unrestricted.insert(admin, path, [{ name: "a" }], { atMs: clock.nowMs(), unstored });
  await objects.unrestricted.insert(admin, "/matrix/brief", [{ name: "b" }], {
    atMs: clock.nowMs() - 60_000,
    unstored,
  });
  expect(reported).toEqual([
    { id: "box:a", reason: "removed" },
    { id: "brief:b", reason: "ended" },
  ]);
  await objects.unrestricted.insert(admin, path, [{ name: "a" }], { atMs: clock.nowMs() + 1, unstored });
  await objects.unrestricted.insert(admin, "/matrix/brief", [{ name: "b" }], {
    atMs: clock.nowMs() - 59_999,
    unstored,
  });
  expect(reported).toHaveLength(2);
  await objects.close();
});

test("a controller whose clock is behind writes a record anew that it removed itself", async () => {
  const [ahead, behind] = [new TestClock(), new TestClock()];
  ahead.advance(60_000);
  await using engine = await openTestEngine({ clock: ahead });
  const [a, b] = [ahead, behind].map((clock) => new ObjectService({ stores: engine, runtime: testRuntime(clock) }));
  await a!.createClass(admin, LINE);
  const [id = ""] = await b!.unrestricted.insert(admin, LINE.path, [{ n: 0 }]);
  for (let n = 1; n <= 3; n += 1) {
    await a!.unrestricted.insert(admin, LINE.path, [{ id, n: -n }], { rewrites: true });
    await b!.unrestricted.remove(admin, [{ id }]);
    await b!.unrestricted.insert(admin, LINE.path, [{ id, n }], { rewrites: true });
    expect(await b!.unrestricted.get(admin, [{ id }])).toMatchObject([{ values: { n } }]);
  }
  await a!.close();
  await b!.close();
});

test("a record is removed and written anew as often as one likes within a millisecond", async () => {
  const clock = new TestClock();
  await using engine = await openTestEngine({ clock });
  const objects = new ObjectService({ stores: engine, runtime: testRuntime(clock) });
  await objects.createClass(admin, LINE);
  const { path } = LINE;
  const [id = ""] = await objects.unrestricted.insert(admin, path, [{ n: 0 }]);
  const unstored: unknown[] = [];
  for (let n = 0; n < 20; n += 1) {
    await objects.unrestricted.remove(admin, [{ id }]);
    await objects.unrestricted.insert(admin, path, [{ id, n }], {
      rewrites: true,
      unstored: (rows) => unstored.push(...rows),
    });
    expect(await objects.unrestricted.get(admin, [{ id }])).toMatchObject([{ values: { n } }]);
  }
  expect(unstored).toEqual([]);
  await objects.close();
});
