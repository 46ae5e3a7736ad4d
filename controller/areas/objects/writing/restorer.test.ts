import { expect, test } from "vitest";
import { VERSION_END_LATE_MS } from "../../../../common/limits.ts";
import { realClock, seededRandom } from "../../../../test/helpers/time/clock.ts";
import { openTestEngine } from "../../../../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { ObjectService, type RestoredState } from "../index.ts";

const admin = testPrincipal();
const PATH = "/matrix/host";

test("restored versions go by the versionttl of their class, but those that tell of relations", async () => {
  let nowMs = Date.UTC(2026, 0, 1);
  const clock = { ...realClock, nowMs: () => nowMs };
  await using engine = await openTestEngine({ clock });
  const objects = new ObjectService({ stores: engine, runtime: { ...testRuntime(clock), random: seededRandom(1) } });
  await objects.createEdgeType(admin, { name: "link", remedy: "" });
  await objects.createClass(admin, {
    path: PATH,
    columns: [{ name: "size", type: "int" }],
    options: { version: true, versionTtlSeconds: 60 },
  });
  const writtenUs = (secondsAgo: number): number => (nowMs - secondsAgo * 1_000) * 1_000;
  const state = (size: number, secondsAgo: number, added: readonly string[] = []): RestoredState => ({
    id: "host:a",
    timeUs: writtenUs(secondsAgo),
    supersededUs: writtenUs(secondsAgo - 10),
    state: {
      values: { size },
      createdMs: nowMs - 300_000,
      untilMs: undefined,
      added: added.map((target) => ({ type: "link", target })),
      dropped: [],
      lost: [],
    },
  });
  const present = { values: { id: "host:a", size: 4 }, timeMs: nowMs, identity: "import", writeUs: writtenUs(0) };
  await objects.unrestricted.ingest(admin, PATH, [{ ...present, createdMs: nowMs - 300_000 }], {
    restored: () => undefined,
  });
  const states = [state(3, 10), state(2, 20, ["host:b", "none:b"]), state(1, 200)];
  expect(await objects.unrestricted.restore(admin, PATH, states)).toEqual([
    { outcome: "stored", relationsLeft: 0 },
    { outcome: "stored", relationsLeft: 1 },
    { outcome: "expired", relationsLeft: 0 },
  ]);
  const sizes = async (): Promise<unknown[]> => {
    const found: unknown[] = [];
    for await (const versions of objects.unrestricted.history(admin, { id: "host:a" }))
      found.push(...versions.map(({ values }) => values?.["size"]));
    return found;
  };
  expect(await sizes()).toEqual([4, 3, 2]);
  nowMs += 60_000 + VERSION_END_LATE_MS;
  expect(await sizes()).toEqual([4, 2]);
  await objects.unrestricted.insert(admin, PATH, [{ id: "host:a", size: 5 }]);
  nowMs += 60_000 + VERSION_END_LATE_MS;
  expect(await sizes()).toEqual([5, 2]);
  await objects.close();
});
