import { describe, expect, it } from "vitest";
import { RECORD_MAX_BYTES } from "../../../common/limits.ts";
import { BASE_MS, EVERYTHING_SENT, TestOutbox } from "../../../test/helpers/areas/ingest.ts";
import { ConsoleLogService } from "../consolelog/index.ts";
import {
  ADMIN,
  SOURCE,
  KEY,
  RUNTIME,
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
  it("keeps what cannot be parsed or stored as error records, and all of its neighbours", async () => {
    const ingest = await prepared();
    await ingest.acknowledged(SOURCE);
    const bad = Array.from({ length: 30 }, (_, index) => `x${index},1,too,many`);
    await outbox.send(ingest, [entry(1, ["a,1", "b,not a number", "c,3", ...bad, ""])]);
    expect(await rowsOf("/matrix/line")).toEqual([
      { name: "a", n: 1 },
      { name: "c", n: 3 },
    ]);
    const log = await rowsOf("/matrix/consolelog/rule");
    expect(log.reduce((sum, row) => sum + Number(row["count"]), 0)).toBe(31);
    expect(log).toContainEqual(
      expect.objectContaining({ name: KEY, host: "web-1", source: "/var/log/a", raw: "x0,1,too,many", count: 1 }),
    );
  });

  it("keeps a record that cannot be parsed, wherever its characters of two units lie", async () => {
    const ingest = await prepared();
    await ingest.acknowledged(SOURCE);
    // The bound of what is kept lies within a character of one of them.
    const lines = ["a,1,", "ab,1,"].map((line) => `${line}${"\u{1F600}".repeat(600)},too,many`);
    await outbox.send(ingest, [entry(1, [...lines, "c,3"])]);
    expect(await rowsOf("/matrix/line")).toEqual([{ name: "c", n: 3 }]);
    const raws = (await rowsOf("/matrix/consolelog/rule")).map(({ raw }) => String(raw));
    expect(raws).toHaveLength(2);
    for (const raw of raws) expect(lines.some((line) => line.startsWith(raw) && raw.length > 990)).toBe(true);
  });

  it("tells what comes late of a host that was away behind what a reader of the log has, line by line", async () => {
    const ingest = await prepared();
    const logs = new ConsoleLogService({ objects, clock: RUNTIME.clock });
    const read = (position = "") => logs.read(ADMIN, { kind: "rule", name: KEY, levels: [] }, { position });
    await outbox.send(ingest, [entry(1, ["x,1,too,many"])]);
    const { position } = await read();
    const agoMs = BASE_MS - 3_600_000;
    const lines = Array.from({ length: 30 }, (_, index) => `y${index},1,too,many`);
    const late = { ...SOURCE, streamId: "stream-0002" };
    await new TestOutbox(late).send(ingest, [{ ...entry(1, lines), timeMs: agoMs }]);
    const found = (await read(position)).logs;
    const counted = "10 more records of this entry could not be parsed.";
    expect(found.map(({ raw, msg }) => (raw === "" ? msg : raw))).toEqual([...lines.slice(0, 20), counted]);
    expect(new Set(found.map(({ sttime }) => sttime))).toEqual(new Set([agoMs]));
    for (const { edtime } of found) expect(edtime).toBeGreaterThanOrEqual(BASE_MS);
  });

  it("counts records that lost their end or have bytes that are no characters, once for each entry", async () => {
    const ingest = await prepared();
    const marked = entry(1, ["a,1", "b,2", "c,3"]);
    if (marked.body?.$case !== "records") throw new Error("records");
    marked.body.value.cut = [0, 7];
    marked.body.value.malformed = [1];
    marked.body.value.records[2] = Buffer.from("63ff2c33", "hex");
    for (const controller of [ingest, newIngest(objects)]) await outbox.send(controller, [marked, entry(2, ["d,4"])]);
    const told = (await rowsOf("/matrix/consolelog/rule")).map(({ level, count, msg }) => ({ level, count, msg }));
    expect(told.toSorted((a, b) => Number(a.count) - Number(b.count))).toEqual([
      { level: 3, count: 1, msg: `Longer than ${RECORD_MAX_BYTES} bytes, and stored without their end: 1 record.` },
      { level: 3, count: 2, msg: "With bytes that are no character of their encoding, stored as U+FFFD: 2 records." },
    ]);
    expect(await rowsOf("/matrix/line")).toHaveLength(4);
  });

  it("goes on when a rule cannot be used, and says so with the number of records", async () => {
    const ingest = await prepared();
    await ingest.acknowledged(SOURCE);
    expect(await outbox.send(ingest, [entry(1, ["a,1", "b,2"], "/matrix/rules/gone"), entry(2, ["c,3"])])).toBe(2);
    expect(await rowsOf("/matrix/consolelog/rule")).toMatchObject([
      { name: "/matrix/rules/gone", count: 2, msg: "There is no rule /matrix/rules/gone." },
    ]);
    expect(await rowsOf("/matrix/line")).toHaveLength(1);
  });

  it("waits with the records of a rule that was removed while a policy of the host needs it, and loses none", async () => {
    await prepared();
    let isNeeded = true;
    const needs = (_tenant: string, host: string, rule: string) =>
      Promise.resolve(isNeeded && host === SOURCE.host && rule === KEY);
    const ingest = newIngest(objects, undefined, { sent: { ...EVERYTHING_SENT, needs } });
    const text = (await rules.load(ADMIN, KEY)).text;
    const sent = [entry(1, ["a,1", "b,2"]), entry(2, ["c,3"], "/matrix/rules/gone")];
    await rules.remove(ADMIN, KEY);
    await expect(outbox.send(ingest, sent)).rejects.toMatchObject({
      code: "unavailable",
      message: expect.stringContaining(`The rule ${KEY} was removed: its records wait`) as string,
    });
    expect([await rowsOf("/matrix/line"), await rowsOf("/matrix/consolelog/rule")]).toEqual([[], []]);
    await rules.put(ADMIN, KEY, text);
    expect(await outbox.send(ingest, sent)).toBe(2);
    expect((await rowsOf("/matrix/line")).map(({ name }) => name)).toEqual(["a", "b"]);
    expect(await rowsOf("/matrix/consolelog/rule")).toMatchObject([{ name: "/matrix/rules/gone", count: 1 }]);

    await rules.remove(ADMIN, KEY);
    isNeeded = false;
    expect(await outbox.send(ingest, [entry(3, ["d,4"])])).toBe(3);
    expect(await rowsOf("/matrix/consolelog/rule")).toHaveLength(2);
  });
});
