import { describe, expect, it } from "vitest";
import type { Entry } from "../../../proto/gen/agent/v1/agent.ts";
import { BASE_MS, EVERYTHING_SENT, TestOutbox } from "../../../test/helpers/areas/ingest.ts";
import { RecentRecords } from "../rules/index.ts";
import {
  ADMIN,
  SOURCE,
  KEY,
  outbox,
  objects,
  rules,
  useIngest,
  prepared,
  newIngest,
  entry,
  rowsOf,
} from "../../../test/helpers/areas/ingest-world.ts";

useIngest();

describe("ingest", () => {
  it("stores the records of a batch and then acknowledges it", async () => {
    const ingest = await prepared();
    expect(await ingest.acknowledged(SOURCE)).toBe(0);
    expect(await outbox.send(ingest, [entry(1, ["a,1", "b,2"]), entry(2, ["c,3"])])).toBe(2);
    expect(await ingest.acknowledged(SOURCE)).toBe(2);
    expect(await rowsOf("/matrix/line")).toEqual([
      { name: "a", n: 1 },
      { name: "b", n: 2 },
      { name: "c", n: 3 },
    ]);
  });

  it("keeps the raw records of a policy that the host was sent in memory, each once, to try rules on", async () => {
    const recent = new RecentRecords();
    await prepared();
    const sent = {
      ...EVERYTHING_SENT,
      missing: (_tenant: string, host: string) =>
        Promise.resolve({ policies: new Set(host === "web-2" ? ["p"] : []), rules: new Set<string>() }),
    };
    const ingest = newIngest(objects, undefined, { recent, sent });
    await outbox.send(ingest, [entry(1, ["a,1", "x"]), entry(2, ["c,3"], "/matrix/rules/none")]);
    await outbox.send(ingest, [entry(1, ["a,1", "x"])]);
    await new TestOutbox({ ...SOURCE, host: "web-2" }).send(ingest, [entry(1, ["forged,1"])]);
    expect(recent.of("matrix", "p")).toMatchObject({ classes: [], records: [{ text: "c,3" }] });
    await outbox.send(ingest, [entry(3, ["d,4", "x"])]);
    const texts = recent.of("matrix", "p").records.map(({ text }) => text);
    expect(texts).toEqual(["d,4", "x"]);
    expect(recent.of("matrix", "p").classes).toEqual(["/matrix/line"]);
  });

  it("upserts objects of a class with keys", async () => {
    const ingest = await prepared();
    await rules.put(ADMIN, KEY, "--class=/matrix/keyed\n--parser=csv\n--fields=name,n\n");
    await ingest.acknowledged(SOURCE);
    await outbox.send(ingest, [entry(1, ["a,1", "b,2"]), entry(2, ["a,3"])]);
    expect(await rowsOf("/matrix/keyed")).toEqual([
      { name: "a", n: 3 },
      { name: "b", n: 2 },
    ]);
  });

  it("upserts objects that are years ahead of the clock, too", async () => {
    const ingest = await prepared();
    await rules.put(ADMIN, KEY, "--class=/matrix/keyed\n--parser=csv\n--fields=name,n\n");
    await objects.unrestricted.insert(ADMIN, "/matrix/keyed", [{ name: "future", n: 1 }], { atMs: Date.UTC(2130, 0) });
    await outbox.send(ingest, [entry(1, ["future,2", "now,2"])]);
    expect(await rowsOf("/matrix/keyed")).toEqual([
      { name: "future", n: 2 },
      { name: "now", n: 2 },
    ]);
  });

  it("counts a run once, in whatever stream it is told", async () => {
    const ingest = await prepared();
    const run = {
      policy: "tick",
      policyRevision: 1,
      scheduledMs: BASE_MS,
      state: "ok",
      code: 0,
      message: "",
      startedMs: 1,
      endedMs: 2,
      records: 3,
    };
    const told: Entry = { sequence: 1, timeMs: BASE_MS + 500, traceparent: "", body: { $case: "run", value: run } };
    await outbox.send(ingest, [told]);
    await new TestOutbox({ ...SOURCE, streamId: "stream-0002" }).send(ingest, [{ ...told, timeMs: BASE_MS + 900 }]);
    expect(await rowsOf("/matrix/system/policyrun")).toMatchObject([
      { policy: "tick", host: "web-1", state: "ok", records: 3 },
    ]);
  });

  it("keeps what the agent lost as a gap, and takes no hole for one that nobody told", async () => {
    const ingest = await prepared();
    await outbox.send(ingest, [entry(1, ["a,1"])]);
    await outbox.send(ingest, [entry(5, ["b,2"])], 3);
    await outbox.send(newIngest(objects), [entry(5, ["b,2"])]);
    await outbox.send(newIngest(objects), [entry(9, ["c,3"])]);
    expect(await rowsOf("/matrix/system/policygap")).toMatchObject([{ reason: "lost", unit: "entries", count: 3 }]);
  });

  it("makes rows of their own of two hosts that name the same stream", async () => {
    const ingest = await prepared();
    const other = { ...SOURCE, host: "web-2" };
    await outbox.send(ingest, [entry(1, ["a,1"])]);
    expect(await ingest.acknowledged(other)).toBe(0);
    await new TestOutbox(other).send(ingest, [entry(1, ["b,2"])]);
    expect(await rowsOf("/matrix/line")).toHaveLength(2);
  });

  it("keeps tenants apart", async () => {
    const ingest = await prepared();
    await outbox.send(ingest, [entry(1, ["a,1"])]);
    expect(await ingest.acknowledged({ ...SOURCE, tenant: "second" })).toBe(0);
  });
});
