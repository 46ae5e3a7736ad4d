import { beforeEach, describe, expect, test } from "vitest";
import type { Row } from "../../../../common/value.ts";
import { realClock, seededRandom } from "../../../../test/helpers/time/clock.ts";
import { MemoryObjects } from "../../../../test/helpers/objects/memory/objects.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import { QueryService } from "../index.ts";

const admin = testPrincipal();
const LIMIT = 7;
let objects: MemoryObjects;
let query: QueryService;

beforeEach(async () => {
  objects = new MemoryObjects({ nowMs: () => Date.UTC(2024, 0, 1), pageSize: 10, narrows: true });
  query = new QueryService({ objects, runtime: { clock: realClock } });
  await query.run(
    admin,
    "create class /matrix/box (host varchar, size bigint, rank int, keys(host), index(size, rank)); create class /matrix/box/rack (slots int)",
  );
});

interface Page {
  readonly rows: readonly Row[];
  readonly cursor: string | undefined;
}

async function page(text: string, cursor: string): Promise<Page> {
  const result = await query.run(admin, text, { cursor });
  const rows: Row[] = [];
  for await (const some of result.rows) rows.push(...some);
  return { rows, cursor: result.meta.cursor };
}

/** All pages one after the other, with something happening between them. */
async function paged(
  text: string,
  between: (page: number) => Promise<unknown> = () => Promise.resolve(),
): Promise<readonly Row[]> {
  const all: Row[] = [];
  let cursor: string | undefined = "";
  for (let number = 0; cursor !== undefined; number += 1) {
    const one: Page = await page(text, cursor);
    expect(one.rows.length).toBeLessThanOrEqual(LIMIT);
    all.push(...one.rows);
    cursor = one.cursor;
    await between(number);
  }
  return all;
}

async function fill(count: number): Promise<void> {
  const random = seededRandom(1);
  for (let index = 0; index < count; index += 1) {
    const size = random.next() < 0.2 ? null : random.next() < 0.1 ? "9007199254740993" : Math.floor(random.next() * 6);
    await objects.unrestricted.insert(admin, index % 3 === 0 ? "/matrix/box/rack" : "/matrix/box", [
      { host: `h${index}`, size, rank: index % 4 },
    ]);
  }
}

describe("pages together are all rows once", () => {
  test.each([
    "",
    "order by size",
    "order by size desc",
    "order by rank desc, size",
    "order by host",
    "order by vtime desc",
    "order by class desc, id desc",
  ])("%s", async (order) => {
    await fill(60);
    const text = `select id, class, size from /matrix/box/ where rank < 3 ${order} limit`;
    const all = await query.rows(admin, `${text} -1`);
    const pages = await paged(`${text} ${LIMIT}`);
    expect(all).toHaveLength(45);
    const names = (rows: readonly Row[]) => rows.map((row) => String(row.id));
    expect(names(pages).sort()).toEqual(names(all).sort());
    const first = /order by (size|host)/.exec(order)?.[1];
    if (first === "size") expect(pages.map((row) => row.size)).toEqual(all.map((row) => row.size));
  });

  test("while others write: what stays is there once, in its order", async () => {
    await fill(60);
    const rows = await paged(`select id, rank from /matrix/box/ order by rank limit ${LIMIT}`, async (number) => {
      await objects.unrestricted.insert(admin, "/matrix/box", [
        { host: `early${number}`, rank: -1 },
        { host: `late${number}`, rank: number },
      ]);
      await objects.unrestricted.remove(admin, [{ id: `box:h${number * 3 + 1}` }]);
    });
    const ids = rows.map((row) => String(row.id));
    expect(new Set(ids).size).toBe(ids.length);
    expect(rows.map((row) => row.rank)).toEqual(
      rows.map((row) => row.rank).sort((left, right) => Number(left) - Number(right)),
    );
    const stayed = Array.from({ length: 60 }, (_, index) => index)
      .filter((index) => index % 3 === 0 || index > 40)
      .map((index) => `${index % 3 === 0 ? "rack" : "box"}:h${index}`);
    expect(ids).toEqual(expect.arrayContaining(stayed));
  });

  test("of records, newest first, without reading those behind the page", async () => {
    await objects.createClass(admin, { path: "/matrix/log", kind: "record", columns: [{ name: "line", type: "int" }] });
    // Several of one time, more than a page has.
    for (let line = 0; line < 100; line += 1)
      await objects.unrestricted.ingest(admin, "/matrix/log", [
        { identity: `s/${line}`, timeMs: Math.floor(line / 10), values: { line } },
      ]);
    const rows = await paged(`select line, vtime from /matrix/log limit ${LIMIT}`);
    expect(rows.map((row) => row.line).sort((left, right) => Number(left) - Number(right))).toEqual(
      Array.from({ length: 100 }, (_, line) => line),
    );
    expect(rows.map((row) => Number(row.vtime))).toEqual(
      Array.from({ length: 100 }, (_, line) => 9 - Math.floor(line / 10)),
    );
    const pages = await countPages(() => page(`select line from /matrix/log limit ${LIMIT}`, ""));
    expect(pages).toBeLessThan(6);
  });
});

async function countPages(work: () => Promise<unknown>): Promise<number> {
  let pages = 0;
  const read = objects.unrestricted.read.bind(objects);
  objects.unrestricted.read = async function* (principal, request) {
    for await (const rows of read(principal, request)) {
      pages += 1;
      yield rows;
    }
  };
  await work();
  return pages;
}

describe("the cursor", () => {
  beforeEach(() => fill(20));

  test("may stand in the statement, and goes with other sizes of the page", async () => {
    const first = await page("select host from /matrix/box order by host limit 2", "");
    const next = await query.rows(
      admin,
      `select host from /matrix/box order by host limit 3 cursor '${String(first.cursor)}'`,
    );
    const all = await query.rows(admin, "select host from /matrix/box order by host");
    expect([...first.rows, ...next]).toEqual(all.slice(0, 5));
    const given = await query.rows(
      admin,
      "select host from /matrix/box where rank >= ? order by host limit ? cursor ?",
      [0, 1, ""],
    );
    expect(given).toEqual(all.slice(0, 1));
  });

  test("ends with the last page, and narrows what is read", async () => {
    expect((await page("select host from /matrix/box limit 100", "")).cursor).toBeUndefined();
    const first = await page("select host from /matrix/box where rank >= 1 order by rank limit 5", "");
    objects.reads.length = 0;
    await page("select host from /matrix/box where rank >= 1 order by rank limit 5", String(first.cursor));
    expect(objects.reads[0]?.where).toEqual([
      { kind: "range", column: "rank", from: 1 },
      { kind: "range", column: "rank", from: 2 },
    ]);
  });

  test("of another statement, cut or made up is refused", async () => {
    const text = "select host from /matrix/box order by host limit 2";
    const { cursor = "" } = await page(text, "");
    const others = [
      "select host from /matrix/box order by size limit 2",
      "select host from /matrix/box where rank = 1 order by host limit 2",
    ];
    for (const other of others)
      await expect(page(other, cursor)).rejects.toMatchObject({ code: "invalid", message: /none of this statement/ });
    const forged = Buffer.from(
      JSON.stringify([(JSON.parse(Buffer.from(cursor, "base64url").toString()) as unknown[])[0], [[], 1, 2]]),
    ).toString("base64url");
    for (const wrong of ["x", cursor.slice(0, -3), "bnVsbA", forged])
      await expect(page(text, wrong), wrong).rejects.toMatchObject({ code: "invalid" });
  });

  test.each([
    "select distinct host from /matrix/box",
    "select count(*) from /matrix/box",
    "select rank from /matrix/box group by rank",
    "select host from /matrix/box limit -1",
    "select host from /matrix/box limit 1 offset 1",
    "select a.host from /matrix/box a join (b:/matrix/box) on b.host = a.host",
    "select host from /matrix/box; select host from /matrix/box",
    "select host from /matrix/box cursor ''",
    "delete from /matrix/box",
    "select host from /matrix/box union select host from /matrix/box",
  ])("goes with single objects only: %s", async (text) => {
    await expect(page(text, "")).rejects.toMatchObject({ code: "invalid" });
  });
});
