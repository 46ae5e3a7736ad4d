import { describe, expect, test } from "vitest";
import { NUMBER_SLOTS, OBJECT_PAGE_MAX, ORDERED_WINDOW_ROWS } from "../../../../common/limits.ts";
import type { EntityChange, EntityKey, NumberOrder, NumberRange } from "../../objects.ts";
import { again, all, uniqueCid, uniqueName, type ContractSubject } from "../harness.ts";

const SLOTS = Array.from({ length: NUMBER_SLOTS }, (_, slot) => slot);
const LAST = NUMBER_SLOTS - 1;
const MIDDLE = NUMBER_SLOTS >> 1;
const DISTINCT = [-1e300, -3, -0.5, 0, 2, 2, 2, 6.5, 6.5, 8, 9, 1e300];
/** More equal numbers than one read holds, for engines that sort what they read. */
const EQUAL = ORDERED_WINDOW_ROWS + 20;
const WRITTEN_AT_ONCE = 100;

function lies(number: number | undefined, { from = -Infinity, to = Infinity }: NumberRange): boolean {
  return number !== undefined && number >= from && number <= to;
}

/** The part of the contract about numbers in many slots. */
export function slotsContract(subject: () => ContractSubject): void {
  describe("slots of numbers", () => {
    const atUs = (offset: number): number => subject().clock.nowMs() * 1_000 + offset;
    const write = (...changes: EntityChange[]): Promise<void> => again(() => subject().store.objects.change(changes));
    const numbersOf = async (key: EntityKey): Promise<readonly (number | undefined)[] | undefined> =>
      (await again(() => subject().store.objects.get([key])))[0]?.numbers;
    const value = (n: number, slot: number): number => 10 * slot + n;

    test("each has its own values: they are found by ranges of one and of two together, and change alone", async () => {
      const cid = uniqueCid();
      const begunUs = atUs(0);
      const keys = [0, 1, 2].map((n) => ({ cid, id: `${n}${uniqueName("n")}` }));
      const [, one, two] = keys.map(({ id }) => id);
      const within = async (...ranges: readonly NumberRange[]): Promise<readonly (string | undefined)[]> =>
        (await all(2, (page) => subject().store.objects.find({ terms: [`c${cid}`], ranges }, page)))
          // An engine may return more.
          .filter(({ key, numbers }) => key.cid === cid && ranges.every((range) => lies(numbers[range.slot], range)))
          .map(({ key: { id } }) => id)
          .sort();
      await write(
        ...keys.map(
          (key, n): EntityChange => ({
            key,
            timeUs: begunUs + 1,
            birth: true,
            addTerms: [`c${cid}`],
            numbers: new Map(SLOTS.map((slot) => [slot, value(n, slot)])),
          }),
        ),
      );
      for (const slot of SLOTS) {
        const next = (slot + 1) % NUMBER_SLOTS;
        expect(await within({ slot, from: value(1, slot) })).toEqual([one, two]);
        expect(await within({ slot, from: value(1, slot) }, { slot: next, to: value(1, next) })).toEqual([one]);
      }
      const changed = new Map([
        [LAST, undefined],
        [MIDDLE, 0.5],
      ]);
      await write({ key: keys[2]!, timeUs: begunUs + 2, numbers: changed });
      expect(await numbersOf(keys[2]!)).toEqual(
        SLOTS.map((slot) => (changed.has(slot) ? changed.get(slot) : value(2, slot))),
      );
      expect(await within({ slot: LAST, from: value(2, LAST) })).toEqual([]);
      expect(await within({ slot: MIDDLE, from: 0, to: 1 })).toEqual([two]);
    });

    orderContract(subject, write);
  });
}

function orderContract(subject: () => ContractSubject, write: (...changes: EntityChange[]) => Promise<void>): void {
  test("lead through a class in their order, either way, in pages of any size and between two numbers", async () => {
    const cid = uniqueCid();
    const [timeUs, terms] = [subject().clock.nowMs() * 1_000 + 1, [`c${cid}`]];
    const numbers = [...DISTINCT, ...Array.from({ length: EQUAL }, () => 7), undefined];
    const changes = numbers.map(
      (number, n): EntityChange => ({
        ...{ key: { cid, id: `${n}${uniqueName("o")}` }, timeUs, birth: true, addTerms: terms },
        numbers: new Map([[LAST, number]]),
      }),
    );
    for (let at = 0; at < changes.length; at += WRITTEN_AT_ONCE)
      await write(...changes.slice(at, at + WRITTEN_AT_ONCE));
    const found = async (
      { descending, behind }: Pick<NumberOrder, "descending" | "behind">,
      size: number,
      range: Omit<NumberRange, "slot"> = {},
    ) => {
      const order = { slot: LAST, descending, ...(behind ? { behind } : {}) };
      const request = { terms, ranges: [{ slot: LAST, ...range }], order };
      const entities = await all(size, (page) => subject().store.objects.find(request, page));
      expect(new Set(entities.map(({ key }) => key.id)).size).toBe(entities.length);
      return entities.filter(({ key }) => key.cid === cid);
    };
    const read = async (descending: boolean, size: number, range: Omit<NumberRange, "slot"> = {}) =>
      (await found({ descending }, size, range)).map((one) => one.numbers[LAST]);
    const ascending = numbers.flatMap((number) => number ?? []).sort((one, other) => one - other);
    expect(await read(false, 100)).toEqual(ascending);
    expect(await read(true, OBJECT_PAGE_MAX)).toEqual([...ascending].reverse());
    const few = ascending.filter((number) => number >= -3 && number < 7);
    expect(await read(true, 3, { from: -3, to: 6.5 })).toEqual([...few].reverse());
    expect(await read(false, 2, { from: 5, to: 4 })).toEqual([]);
    const sevens = changes.flatMap(({ key: { id }, numbers: own }) => (own?.get(LAST) === 7 ? [id] : [])).sort();
    const ids = async (...of: Parameters<typeof found>) => (await found(...of)).map(({ key }) => key.id);
    expect(await ids({ descending: false }, 300, { from: 7, to: 7 })).toEqual(sevens);
    expect(await ids({ descending: true }, 300, { from: 7, to: 7 })).toEqual(sevens.toReversed());
    const [third = "", last = ""] = [sevens[2], sevens.at(-1)];
    expect(await ids({ descending: false, behind: { cid, id: third } }, 300, { from: 7, to: 7.5 })).toEqual(
      sevens.slice(3),
    );
    expect(await ids({ descending: true, behind: { cid, id: third } }, 9, { to: 7 })).toEqual([
      ...sevens.slice(0, 2).toReversed(),
      ...(await ids({ descending: true }, 9, { to: 6.5 })),
    ]);
    expect(await ids({ descending: false, behind: { cid, id: last } }, 9, { from: 7, to: 8 })).toHaveLength(1);
    // No entity has the number at which these ranges begin, so `behind` excludes none.
    expect(await ids({ descending: false, behind: { cid, id: last } }, 300, { from: 6.7, to: 7 })).toEqual(sevens);
    expect(await ids({ descending: true, behind: { cid, id: third } }, 300, { from: 7, to: 7.5 })).toEqual(
      sevens.toReversed(),
    );
  });
}
