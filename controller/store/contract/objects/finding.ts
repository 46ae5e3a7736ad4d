import { describe, expect, test } from "vitest";
import { OBJECT_PAGE_MAX, TERM_MAX_BYTES } from "../../../../common/limits.ts";
import type { EntityChange } from "../../objects.ts";
import { again, all, uniqueCid, uniqueName } from "../harness.ts";
import { cellsOf, newKey, type ObjectsSubject } from "./subject.ts";

/** Searches by terms and by ranges of numbers. */
export function findContract(store: ObjectsSubject): void {
  describe("find", () => {
    termsContract(store);
    rangesContract(store);
    pagesContract(store);
  });
}

function termsContract({ at, write, find }: ObjectsSubject): void {
  test("finds by each term and by all together, as they are added and dropped", async () => {
    const mark = uniqueName("t");
    const [red, round] = [`${mark} red`, `${mark} round`];
    const keys = ["apple", "brick", "ball"].map((id) => ({ cid: uniqueCid(), id: `${mark}-${id}` }));
    const [apple, brick, ball] = [keys[0]!, keys[1]!, keys[2]!];
    await write(
      { key: apple, timeUs: at(1), birth: true, addTerms: [red, round] },
      { key: brick, timeUs: at(1), birth: true, addTerms: [red] },
    );
    await write({ key: ball, timeUs: at(1), birth: true, addTerms: [round] });
    expect(await find({ terms: [red] })).toEqual(expect.arrayContaining([apple.id, brick.id]));
    expect(await find({ terms: [red, round] })).toContain(apple.id);
    await write({ key: ball, timeUs: at(5), addTerms: [red] });
    expect(await find({ terms: [round, red] })).toEqual(expect.arrayContaining([apple.id, ball.id]));
    await write({ key: ball, timeUs: at(4), dropTerms: [red] });
    expect(await find({ terms: [red] })).toEqual([apple.id, ball.id, brick.id].sort());
    await write({ key: ball, timeUs: at(6), dropTerms: [red] }, { key: ball, timeUs: at(5), addTerms: [red] });
    expect(await find({ terms: [red] })).toEqual([apple.id, brick.id].sort());
    expect(await find({ terms: [uniqueName("unknown")] })).toEqual([]);
  });

  test("terms beyond their limit are cut and still found", async () => {
    const key = newKey();
    const long = uniqueName("long").padEnd(TERM_MAX_BYTES - 1, "x") + "é and much more";
    await write({ key, timeUs: at(1), birth: true, addTerms: [long] });
    expect(await find({ terms: [long] })).toEqual([key.id]);
    await write({ key, timeUs: at(2), dropTerms: [long] });
    expect(await find({ terms: [long] })).toEqual([]);
  });
}

function rangesContract({ objects, at, write, find }: ObjectsSubject): void {
  test("ranges of numbers: both ends belong, an absent end is open, negative and broken numbers have their place", async () => {
    const mark = uniqueName("n");
    const numbers = [-1e300, -2.5, -1, 0, 0.25, 1, 1_700_000_000_000_000, 1e300];
    const keys = numbers.map((_, i) => ({ cid: uniqueCid(), id: `${mark}-${i}` }));
    await write(
      ...keys.map(
        (key, i): EntityChange => ({
          key,
          timeUs: at(1),
          birth: true,
          addTerms: [mark],
          numbers: new Map([[2, numbers[i]!]]),
        }),
      ),
    );
    const between = async (from?: number, to?: number): Promise<readonly number[]> => {
      const range = { slot: 2, ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) };
      const entities = await all(3, (page) => objects().find({ terms: [mark], ranges: [range] }, page));
      const inside = entities
        .map((entity) => entity.numbers[2]!)
        .filter((value) => value >= (from ?? -Infinity) && value <= (to ?? Infinity));
      return [...new Set(inside)].sort((a, b) => a - b);
    };
    expect(await between()).toEqual(numbers);
    expect(await between(-2.5, 0.25)).toEqual([-2.5, -1, 0, 0.25]);
    expect(await between(1)).toEqual([1, 1_700_000_000_000_000, 1e300]);
    expect(await between(undefined, -1)).toEqual([-1e300, -2.5, -1]);
    await write(
      { key: keys[3]!, timeUs: at(2), numbers: new Map([[2, undefined]]) },
      { key: keys[4]!, timeUs: at(2), numbers: new Map([[2, 5]]) },
    );
    expect(await between(0, 5)).toEqual([1, 5]);
  });

  test("a range alone is a condition as well", async () => {
    const key = newKey();
    const value = 1e15 + Math.floor(uniqueCid());
    await write({ key, timeUs: at(1), birth: true, numbers: new Map([[1, value]]) });
    expect(await find({ terms: [], ranges: [{ slot: 1, from: value, to: value }] })).toContain(key.id);
  });
}

function pagesContract({ objects, at, write, find }: ObjectsSubject): void {
  test("pages hold everything once, however small they are", async () => {
    const [cid, mark] = [uniqueCid(), uniqueName("page")];
    const ids = Array.from({ length: 45 }, (_, i) => `p${String(i).padStart(2, "0")}`);
    await write(
      ...ids.map(
        (id): EntityChange => ({
          key: { cid, id },
          timeUs: at(1),
          birth: true,
          addTerms: [mark],
          numbers: new Map([[0, 1]]),
        }),
      ),
    );
    for (const limit of [1, 7, 45, OBJECT_PAGE_MAX]) expect(await find({ terms: [mark] }, limit)).toEqual(ids);
    expect(await find({ terms: [mark], ranges: [{ slot: 0, from: 1, to: 1 }] }, 4)).toEqual(ids);
  });

  test("a cursor belongs to its request", async () => {
    const [cid, mark] = [uniqueCid(), uniqueName("cursor")];
    await write(
      ...["a", "b", "c"].map(
        (id): EntityChange => ({ key: { cid, id }, timeUs: at(1), birth: true, addTerms: [mark] }),
      ),
    );
    let cursor: string | undefined;
    while (cursor === undefined) cursor = (await again(() => objects().find({ terms: [mark] }, { limit: 1 }))).cursor;
    const invalid = { code: "invalid" };
    const wrong = cursor;
    await expect(
      again(() => objects().find({ terms: [`${mark} other`] }, { limit: 1, cursor: wrong })),
    ).rejects.toMatchObject(invalid);
    await expect(again(() => objects().scan({ limit: 1, cursor: wrong }))).rejects.toMatchObject(invalid);
    for (const garbage of ["", "garbage", "~~~~", cursor.slice(0, -3), `${cursor}AAAA`]) {
      await expect(again(() => objects().find({ terms: [mark] }, { limit: 1, cursor: garbage }))).rejects.toMatchObject(
        invalid,
      );
    }
    for (const limit of [0, -1, 1.5, OBJECT_PAGE_MAX + 1])
      await expect(again(() => objects().find({ terms: [mark] }, { limit }))).rejects.toMatchObject(invalid);
    await expect(again(() => objects().find({ terms: [] }, { limit: 1 }))).rejects.toMatchObject(invalid);
  });
}

/** Scans of all entities. */
export function scanContract({ objects, at, write }: ObjectsSubject): void {
  test("a scan meets every living entity once", async () => {
    const cid = uniqueCid();
    const ids = Array.from({ length: 30 }, (_, i) => `s${String(i).padStart(2, "0")}`);
    await write(...ids.map((id): EntityChange => ({ key: { cid, id }, timeUs: at(1), birth: true })));
    await write(
      { key: { cid, id: "s07" }, timeUs: at(2), death: true },
      { key: { cid, id: "unborn" }, timeUs: at(2), cells: cellsOf({ "1": "x" }) },
    );
    const met = (await all(13, (page) => objects().scan(page)))
      .filter((entity) => entity.key.cid === cid)
      .map((entity) => entity.key.id);
    expect(met.sort()).toEqual(ids.filter((id) => id !== "s07"));
  });
}
