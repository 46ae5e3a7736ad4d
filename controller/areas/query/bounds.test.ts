import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  QUERY_COLLECT_MAX_ROWS,
  QUERY_DEFAULT_LIMIT_ROWS,
  QUERY_JOIN_MAX_ROWS,
  QUERY_SORT_MAX_ROWS,
  QUERY_TOP_MAX_ROWS,
} from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";
import type { Row } from "../../../common/value.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { MemoryObjects } from "../../../test/helpers/objects/memory/objects.ts";
import { admin, boxes, openQueries, query } from "../../../test/helpers/mql/query-world.ts";
import type { ObjectRow } from "../objects/index.ts";
import { QueryService } from "./index.ts";

openQueries();

describe("bounds", () => {
  test("a plain select answers the default limit, LIMIT -1 all; aggregates and changes see all", async () => {
    const count = QUERY_DEFAULT_LIMIT_ROWS * 2;
    await boxes(count);
    expect(await query.rows(admin, "select host from /matrix/ent/box")).toHaveLength(QUERY_DEFAULT_LIMIT_ROWS);
    expect(await query.rows(admin, "select host from /matrix/ent/box limit -1")).toHaveLength(count);
    expect(await query.rows(admin, "select count(*) from /matrix/ent/box")).toEqual([{ count }]);
    expect(await query.rows(admin, "select host, count(*) from /matrix/ent/box group by host")).toHaveLength(count);
    expect(await query.rows(admin, "update /matrix/ent/box set size = 0")).toEqual([{ count }]);
    expect(await query.rows(admin, "delete from /matrix/ent/box")).toEqual([{ count }]);
  });

  test("a select with a limit stops reading as soon as it has enough", async () => {
    const source = endless();
    expect(await source.query.rows(admin, "select host from /matrix/ent/box where size > 2 limit 5")).toHaveLength(5);
    expect(source.pages()).toBe(1);
  });

  test("sorting keeps only the best rows when there is a limit, and is refused when too many would be held", async () => {
    const source = endless(QUERY_SORT_MAX_ROWS + 1_000);
    const best = await source.query.rows(admin, "select size from /matrix/ent/box order by size desc limit 3 offset 1");
    expect(best.map((row) => row.size)).toEqual([
      QUERY_SORT_MAX_ROWS + 998,
      QUERY_SORT_MAX_ROWS + 997,
      QUERY_SORT_MAX_ROWS + 996,
    ]);
    const tooMany = endless(QUERY_SORT_MAX_ROWS + 1_000).query.rows(
      admin,
      "select size from /matrix/ent/box order by size limit -1",
    );
    await expect(tooMany).rejects.toMatchObject({ code: "too_large", details: { limit: "QUERY_SORT_MAX_ROWS" } });
  });

  test("a long sort in memory is whole and in order, equal keys in the order of arrival", async () => {
    const count = QUERY_TOP_MAX_ROWS * 5;
    const rows = await endless(count).query.rows(
      admin,
      `select size, host from /matrix/ent/box order by tags, size desc limit ${count}`,
    );
    expect(rows.map((row) => row.size)).toEqual(Array.from({ length: count }, (_, index) => count - 1 - index));
    const ties = await endless(count).query.rows(
      admin,
      `select size from /matrix/ent/box order by tags limit ${count}`,
    );
    expect(ties.map((row) => row.size)).toEqual(Array.from({ length: count }, (_, index) => index));
  });

  test("a sort of more rows than memory holds goes over the disk, of which nothing is left", async () => {
    const sortFolder = await mkdtemp(join(tmpdir(), "odp-sort-"));
    const count = QUERY_SORT_MAX_ROWS + 1_000;
    const { query: spilling } = endless(count, { sortFolder });
    const result = await spilling.run(admin, "select size from /matrix/ent/box order by size desc limit -1");
    let expected = count;
    for await (const page of result.rows)
      for (const row of page)
        if (row.size !== (expected -= 1)) throw new Error(`${String(row.size)} instead of ${expected}`);
    expect(expected).toBe(0);
    expect(await readdir(sortFolder)).toEqual([]);
    await rm(sortFolder, { recursive: true });
  });

  test("a join that would hold too many objects is refused", async () => {
    const all = endless(QUERY_JOIN_MAX_ROWS + 2_000).query.rows(
      admin,
      "select count(*) from /matrix/ent/box a join (b:/matrix/ent/box) on b.size = a.size",
    );
    await expect(all).rejects.toMatchObject({ code: "too_large", details: { limit: "QUERY_JOIN_MAX_ROWS" } });
  });

  test("collecting too many rows is refused", async () => {
    const all = endless(QUERY_COLLECT_MAX_ROWS + 2_000).query.rows(admin, "select size from /matrix/ent/box limit -1");
    await expect(all).rejects.toMatchObject({ code: "too_large", details: { limit: "QUERY_COLLECT_MAX_ROWS" } });
  });

  test("a query lets others work between its rows", async () => {
    let nowMs = 0;
    const slow = { ...realClock, monotonicMs: () => (nowMs += 10) };
    let others = 0;
    let running = true;
    const other = (): void => {
      others += 1;
      if (running) setImmediate(other);
    };
    setImmediate(other);
    await endless(10_000, { clock: slow }).query.rows(admin, "select count(*), max(size) from /matrix/ent/box");
    running = false;
    expect(others).toBeGreaterThan(50);
  });

  test("a query ends when its caller goes away", async () => {
    const gone = new AbortController();
    const { query: endlessQuery } = endless();
    const result = await endlessQuery.run(admin, "select host from /matrix/ent/box limit -1", { signal: gone.signal });
    const rows = result.rows[Symbol.asyncIterator]();
    expect((await rows.next()).done).toBe(false);
    gone.abort();
    await expect(drain(rows)).rejects.toMatchObject({ code: "cancelled" });
  });
});

/** A box class whose rows are made while they are read, 1,000 a page. */
function endless(
  count = Infinity,
  { clock = realClock, ...options }: { readonly clock?: Clock; readonly sortFolder?: string } = {},
): { readonly query: QueryService; pages(): number } {
  let pages = 0;
  const source = new MemoryObjects({ nowMs: () => 0 });
  const ready = source.createClass(admin, {
    path: "/matrix/ent/box",
    columns: [
      { name: "host", type: "varchar" },
      { name: "size", type: "int" },
      { name: "tags", type: "varchar" },
    ],
  });
  source.unrestricted.read = async function* () {
    const view = await ready;
    for (let at = 0; at < count; at += 1_000) {
      pages += 1;
      const length = Math.min(1_000, count - at);
      yield Array.from({ length }, (_, index): ObjectRow => {
        const values: Row = { host: `h${at + index}`, size: at + index };
        return { id: `box:${at + index}`, class: view, values, vtimeMs: 0, ctimeMs: 0 };
      });
    }
  };
  return { query: new QueryService({ objects: source, runtime: { clock }, ...options }), pages: () => pages };
}

async function drain(rows: AsyncIterator<readonly Row[]>): Promise<void> {
  while (!(await rows.next()).done);
}
