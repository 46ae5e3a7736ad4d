import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WRITE_AHEAD_MAX_MS } from "../../../../common/limits.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { openTestEngine, type TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import type { Row } from "../../../../common/value.ts";
import { ObjectService } from "../../objects/index.ts";
import { QueryService } from "../service.ts";
import { visibleObjects } from "../index.ts";

const admin = testPrincipal();
const FUTURE = "2130-01-01 00:00:00";
const REFUSED = {
  code: "invalid",
  message: expect.stringMatching(
    /^\[Valid\] AT 2130-01-01T00:00:00.000Z is more than 5 minutes ahead of the controller's clock/,
  ),
  details: { limit: "WRITE_AHEAD_MAX_MS" },
};
const GONE_WITHIN_MS = 30_000;

let engine: TestEngine;
let objects: ObjectService;
let query: QueryService;
const runtime = testRuntime(realClock);

/** A controller that is started over what the one before has left. */
async function restart(): Promise<void> {
  await query?.close();
  await objects?.close();
  objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime });
  const controllers = { own: "one", has: (id: string) => id === "one" };
  query = new QueryService({ objects, runtime, batches: { stores: engine, controllers, objects, runtime } });
}

const rows = (text: string): Promise<readonly Row[]> => query.rows(admin, text);

async function hosts(where: string): Promise<readonly unknown[]> {
  return (await rows(`select host from /matrix/box where ${where} order by host`)).map(({ host }) => host);
}

beforeAll(async () => {
  engine = await openTestEngine();
  await restart();
  await rows(`create class /matrix/box (host varchar, size int, keys(host)) with version=true;
    create class /matrix/brief (host varchar, keys(host)) with ttl=1;
    create class /matrix/line (n int) with kind='record'`);
});
afterAll(async () => {
  await query.close();
  await objects.close();
  await engine[Symbol.asyncDispose]();
});

describe("AT of a time that is too far ahead", () => {
  test("is refused for objects, however it comes, and nothing is written", async () => {
    const texts = [
      `insert into /matrix/box (host) values ('no') at '${FUTURE}'`,
      `insert into /matrix/box host='no' at ${Date.UTC(2130, 0)}`,
      `insert into /matrix/box (host) values ('no'), ('neither') at '${FUTURE}'`,
    ];
    for (const text of texts) await expect(rows(text)).rejects.toMatchObject(REFUSED);
    const batch = `begin insert into /matrix/box (host) values ('no'); ${texts[0]}; end`;
    await expect(rows(batch)).rejects.toMatchObject({ ...REFUSED, message: expect.stringMatching(/more than 5 min/) });
    const values = [
      ["no", Date.now()],
      ["no", FUTURE],
    ];
    const text = "insert into /matrix/box (host) values (?) at ?";
    await expect(query.run(admin, text, { values })).rejects.toMatchObject(REFUSED);
    expect(await hosts("size is null")).toEqual([]);
  });

  test("is no time at all where records could not keep it either, as before 1970", async () => {
    for (const at of ["'1960-01-01'", "-5", "8640000000000001", "1e300"])
      await expect(rows(`insert into /matrix/line (n) values (1) at ${at}`)).rejects.toMatchObject({
        code: "invalid",
        message: expect.stringMatching(/is no time from 1970 up to 9999/),
      });
  });

  test("is kept by records, and objects keep times of the past and of the next minutes", async () => {
    await rows(`insert into /matrix/line (n) values (1) at '${FUTURE}'`);
    expect(await rows(`select n from /matrix/line where vtime >= '${FUTURE}'`)).toEqual([{ n: 1 }]);
    const soonMs = realClock.nowMs() + WRITE_AHEAD_MAX_MS - 60_000;
    await rows(`insert into /matrix/box (host, size) values ('soon', 1) at ${soonMs}`);
    await rows("insert into /matrix/box (host, size) values ('past', 1) at '2020-01-01 00:00:00'");
    expect(await hosts("vtime > now()")).toEqual(["soon"]);
    expect(await hosts("vtime <= '2020-01-01 00:00:00'")).toEqual(["past"]);
  });
});

test("a store with an object of the future writes all others at the present time, before a restart and after it", async () => {
  // As versions that took any time have left it.
  await objects.unrestricted.insert(admin, "/matrix/box", [{ host: "future", size: 0 }], { atMs: Date.UTC(2130, 0) });
  const recent = "vtime > ago('1 hour') and vtime <= now()";
  for (const round of [1, 2]) {
    await rows(`update /matrix/box set size=${round} where host='future'`);
    await rows(`begin
      update /matrix/box set size=size + 10 where host='future';
      insert into /matrix/box (host, size) values ('batch${round}', ${round}), ('future', ${round + 20});
      update /matrix/box set size=${round} where host='batch1' or host='future';
      end`);
    await rows(`insert into /matrix/box (host, size) values ('new${round}', ${round}), ('future', ${round})`);
    expect(await hosts(`size=${round}`)).toEqual(
      round === 1 ? ["batch1", "future", "new1", "past", "soon"] : ["batch1", "batch2", "future", "new2"],
    );
    await restart();
  }
  expect(await hosts(recent)).toEqual(["batch1", "batch2", "new1", "new2"]);
  expect(await rows("select size from /matrix/box where host='future'")).toEqual([{ size: 2 }]);
  await rows("insert into /matrix/brief host='brief'");
  await expect.poll(() => rows("select host from /matrix/brief"), { timeout: GONE_WITHIN_MS }).toEqual([]);
  await rows("begin delete from /matrix/box where host='future' or host='new1'; end");
  expect(await hosts("host='future' or host='new1'")).toEqual([]);
  await rows("insert into /matrix/box (host, size) values ('future', 3), ('new1', 3)");
  expect([await hosts("size=3"), await hosts(`size=3 and ${recent}`)]).toEqual([["future", "new1"], ["new1"]]);
});
