import { expect, test } from "vitest";
import { NUMBER_SLOTS } from "../../../../common/limits.ts";
import type { EntityChange, NumberRange } from "../../objects.ts";
import { all, bytes, uniqueCid, uniqueName } from "../harness.ts";
import { AGE, type AgeSubject, TIMEOUT_MS } from "./subject.ts";

const OBJECTS = 300;
const FLIPS = 5 * AGE;
const NUMBERS = 1_000 * AGE;

/** Numbers that change again and again. */
export function agedNumbersContract({ objects, warnings, baseUs, write, inOrder, fresh, holds }: AgeSubject): void {
  test(
    "an object whose numbers change again and again is found by those it has, in the first slot and the last",
    async () => {
      const aged = await fresh();
      const last = NUMBER_SLOTS - 1;
      await inOrder(NUMBERS, (n) => ({
        key: aged.key,
        timeUs: baseUs() + 10 + n,
        numbers: new Map([
          [0, n],
          [last, n % 7 === 0 ? undefined : -n],
        ]),
      }));
      const final = NUMBERS + 1;
      await write({
        key: aged.key,
        timeUs: baseUs() + 10 + final,
        numbers: new Map([
          [0, 1],
          [last, final],
        ]),
      });
      await holds(aged);
      const found = async (range: NumberRange): Promise<readonly string[]> =>
        (await all(10, (page) => objects().find({ terms: [aged.kind], ranges: [range] }, page))).map(
          ({ key: { id } }) => id,
        );
      expect(await found({ slot: last, from: final, to: final })).toEqual([aged.key.id]);
      expect(await found({ slot: last, to: 0 })).toEqual([]);
      expect(await found({ slot: 0, from: 2 })).toEqual([]);
      expect(warnings()).toEqual([]);
    },
    TIMEOUT_MS,
  );
}

/** Values that many objects take in turn. */
export function flippedValuesContract({ baseUs, write, find }: AgeSubject): void {
  test(
    "many objects whose status flips between two values are found by the one they have",
    async () => {
      const cid = uniqueCid();
      const [open, closed] = [uniqueName("a9=open"), uniqueName("a9=closed")];
      const keys = Array.from({ length: OBJECTS }, (_, n) => ({ cid, id: `f${n}` }));
      for (let flip = 0; flip < FLIPS; flip += 1) {
        const [now, before] = flip % 2 === 0 ? [open, closed] : [closed, open];
        const changes = keys.map(
          (key): EntityChange => ({
            key,
            timeUs: baseUs() + 10 + flip,
            ...(flip === 0 ? { birth: true } : { dropTerms: [before] }),
            cells: new Map([["9", bytes(now)]]),
            addTerms: [now],
          }),
        );
        await write(...changes);
      }
      const [now, before] = FLIPS % 2 === 1 ? [open, closed] : [closed, open];
      const ids = keys.map(({ id }) => id).sort();
      for (const limit of [37, 1_000]) expect(await find([now], limit)).toEqual(ids);
      expect(await find([before])).toEqual([]);
    },
    TIMEOUT_MS,
  );
}
