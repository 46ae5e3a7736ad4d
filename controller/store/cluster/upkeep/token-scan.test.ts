import { expect, test } from "vitest";
import { seededRandom } from "../../../../test/helpers/time/clock.ts";
import type { Cassandra, PageOfRows, PagePlace, Statement } from "../cassandra/cassandra.ts";
import { requestText } from "../cursor.ts";
import { TokenScan } from "./token-scan.ts";

interface Row {
  readonly token: bigint;
  readonly name: string;
  readonly isRemoved: boolean;
}

const random = seededRandom(11);
const LEAST = -(2n ** 63n);

/** Partitions in the order of their tokens, each with its rows. */
function partitions(count: number, rowsOf: (at: number) => number, isRemoved: (at: number) => boolean): Row[] {
  const tokens = Array.from({ length: count }, () => LEAST + 1n + BigInt(Math.floor(random.next() * 2 ** 52)) * 4_096n);
  return tokens
    .sort((a, b) => (a < b ? -1 : 1))
    .flatMap((token, at) =>
      Array.from({ length: rowsOf(at) }, (_, n) => ({ token, name: `${at}/${n}`, isRemoved: isRemoved(at) })),
    );
}

/** A node that aborts a read which passes too many removed rows. */
function node(table: readonly Row[], removedMax: number) {
  const reads = { given: 0, up: 0 };
  const tryPage = ({ params }: Statement, { size, state }: PagePlace): Promise<PageOfRows | undefined> => {
    reads.given += 1;
    const [after, to] = params as [bigint, bigint];
    const range = table.filter(({ token }) => token > after && token <= to);
    const rows: object[] = [];
    let removed = 0;
    let at = Number(state ?? 0);
    for (; at < range.length && rows.length < size; at += 1) {
      const row = range[at]!;
      if (!row.isRemoved) rows.push({ name: row.name, scanned_token: row.token });
      else if ((removed += 1) > removedMax) {
        reads.up += 1;
        return Promise.resolve(undefined);
      }
    }
    return Promise.resolve({ rows: rows as never, ...(at < range.length ? { state: String(at) } : {}) });
  };
  const cassandra = { tryPage, deadline: () => undefined } as unknown as Cassandra;
  return { cassandra, reads };
}

interface Scanning {
  readonly removedMax: number;
  readonly limit: number;
  readonly hasSingleRows?: boolean;
  readonly isTolerant?: boolean;
}

async function scanned(table: readonly Row[], of: Scanning) {
  const { cassandra, reads } = node(table, of.removedMax);
  const scan = new TokenScan(
    { cassandra, keyspace: "k" },
    { table: "t", columns: "name", partitionKey: "id", hasSingleRows: of.hasSingleRows ?? false, ...of },
  );
  const names: string[] = [];
  const unreadable: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await scan.page(requestText("k", "scan"), {
      limit: of.limit,
      ...(cursor !== undefined && { cursor }),
    });
    expect(page.rows.length).toBeLessThanOrEqual(of.limit);
    names.push(...page.rows.map((row) => String(row.name)));
    unreadable.push(...(page.unreadable === undefined ? [] : [page.unreadable]));
    cursor = page.cursor;
  } while (cursor !== undefined);
  return { names, reads, unreadable };
}

const living = (table: readonly Row[]): string[] => table.filter(({ isRemoved }) => !isRemoved).map(({ name }) => name);

test("a table in which little was removed is read page by page and no more", async () => {
  const table = partitions(
    300,
    () => 3,
    () => false,
  );
  const { names, reads } = await scanned(table, { removedMax: 100, limit: 50 });
  expect(names).toEqual(living(table));
  expect(reads).toEqual({ given: 18, up: 0 });
});

test("where more was removed than a read passes every row comes, of partitions with one row once", async () => {
  const table = partitions(
    2_000,
    () => 1,
    (at) => at % 500 > 10,
  );
  const { names, reads } = await scanned(table, { removedMax: 100, limit: 20, hasSingleRows: true });
  expect(names).toEqual(living(table));
  expect(reads.up).toBeGreaterThan(0);
  expect(reads.given).toBeLessThan(600);
});

test("rows of large partitions among removed ones come at least once, in their order", async () => {
  const table = partitions(
    400,
    (at) => (at % 20 === 0 ? 45 : 5),
    (at) => at % 20 !== 0,
  );
  const { names, reads } = await scanned(table, { removedMax: 30, limit: 10 });
  expect([...new Set(names)]).toEqual(living(table));
  expect(reads.up).toBeGreaterThan(0);
});

test("a partition that no read comes through is told as that", async () => {
  const table = partitions(
    10,
    (at) => (at === 5 ? 200 : 1),
    (at) => at === 5,
  );
  await expect(scanned(table, { removedMax: 100, limit: 10 })).rejects.toMatchObject({ code: "unavailable" });
});

test("partitions that cannot be read are told and passed by where that is wanted, and all others come", async () => {
  const isBad = (at: number): boolean => at === 0 || at === 5 || at === 9;
  const table = partitions(10, (at) => (isBad(at) ? 200 : 1), isBad);
  const { names, reads, unreadable } = await scanned(table, { removedMax: 100, limit: 10, isTolerant: true });
  expect([...new Set(names)]).toEqual(living(table));
  expect(unreadable).toEqual([0, 5, 9].map((at) => String(table.find(({ name }) => name === `${at}/0`)?.token)));
  expect(reads.given).toBeLessThan(1_000);
});
