import { expect, test } from "vitest";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import type { NewRecord, Unrestricted } from "../../objects/index.ts";
import type { Settled } from "./repeatable.ts";
import { repeatableInsert, retimedIn } from "./rows.ts";

const NOTHING = new AbortController().signal;

/** The identities of the rows of the third statement of a batch, as its settlement says. */
async function identities(settled: Settled): Promise<readonly Partial<NewRecord>[]> {
  const made: NewRecord[] = [];
  const view = { path: "/matrix/line", kind: "record", system: false };
  const work = { scope: { principal: testPrincipal() }, view, rows: [{ n: 1 }, { n: 2 }] };
  const objects: Unrestricted<"ingest"> = {
    unrestricted: {
      ingest: (_by, _path, records) => {
        made.push(...records);
        return Promise.resolve(records.map(() => ""));
      },
    },
  };
  const unstored = { storedOf: (write: (told: undefined) => Promise<unknown>) => write(undefined) };
  const insert = repeatableInsert([work as never], { objects, unstored, clock: realClock } as never);
  const batch = { identity: "batch/b1", statement: 2 };
  await insert?.make(settled, { identity: "batch/b1/2", batch, signal: NOTHING, retimed: undefined });
  return made.map(({ identity, ordinal, isOrdered }) => ({ identity, ordinal, isOrdered }));
}

test("rows of a batch that was settled before an upgrade have the ids that were made of it then", async () => {
  expect(await identities({ kind: "rows", timesUs: [[1_000]] })).toEqual([
    { identity: "batch/b1/2/0/0" },
    { identity: "batch/b1/2/0/1" },
  ]);
});

test.each<Settled>([
  { kind: "orderedRows", timesUs: [[1_000]] },
  // The form of the version before this one: a batch that it left open goes on with the ids that it may have stored.
  { kind: "rows", timesUs: [[1_000]], isOrdered: true },
])("rows of all statements of a batch are in one order, settled as %j", async (settled) => {
  const place = { identity: "batch/b1/of/0", isOrdered: true };
  expect(await identities(settled)).toEqual([
    { ...place, ordinal: 2 * 2 ** 24 },
    { ...place, ordinal: 2 * 2 ** 24 + 1 },
  ]);
});

test("rows that get later times stay in that order", () => {
  const settled = { kind: "orderedRows", timesUs: [[1], [2, 3]] } as const;
  const later = retimedIn(settled, { at: 1, places: [0], count: 2 }, 9);
  expect(later).toEqual({ kind: "orderedRows", timesUs: [[1], [9, 3]] });
  expect(retimedIn({ ...settled, kind: "rows", isOrdered: true }, { at: 1, places: [0], count: 2 }, 9)).toEqual({
    ...later,
    kind: "rows",
    isOrdered: true,
  });
});
