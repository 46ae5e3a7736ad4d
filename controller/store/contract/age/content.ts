import { describe, expect, test } from "vitest";
import type { EntityChange, EntityKey, ObjectStore } from "../../objects.ts";
import { again, all, bytes, text, uniqueCid, uniqueName } from "../harness.ts";
import { agedRecordsContract } from "./records.ts";
import { AGE, type AgeSubject, TIMEOUT_MS } from "./subject.ts";

const CHANGES = 10_000 * AGE;
const ELEMENTS = 400 * AGE;
const OBJECTS = 200;
const LIVES = 3 * AGE;

/** The part of the *age* contract about cells, records and lives. */
export function agedContentContract(store: AgeSubject): void {
  describe("content", () => {
    agedCellsContract(store);
    rebornObjectsContract(store);
    agedRecordsContract(store);
  });
}

function agedCellsContract({ subject, objects, warnings, write, inOrder }: AgeSubject): void {
  test(
    "an object that was changed ten thousand times has the last value of each attribute",
    async () => {
      const key = { cid: uniqueCid(), id: "changed" };
      const fromUs = subject().clock.nowMs() * 1_000;
      await inOrder(CHANGES, (n) => ({
        key,
        timeUs: fromUs + n,
        ...(n === 0 ? { birth: true } : {}),
        cells: new Map([[`${n % 7}`, n % 70 === 69 ? undefined : bytes(`v${n}`)]]),
      }));
      const expected: Record<string, string> = {};
      for (let n = CHANGES - 7; n < CHANGES; n += 1) if (n % 70 !== 69) expected[`${n % 7}`] = `v${n}`;
      expect(await valuesOf(objects(), key)).toEqual(expected);
      expect(warnings()).toEqual([]);
    },
    TIMEOUT_MS,
  );

  test(
    "a set whose elements come and go has those that came last, and one that is repeated late brings none back",
    async () => {
      const key = { cid: uniqueCid(), id: "set" };
      const fromUs = subject().clock.nowMs() * 1_000;
      const step = (n: number): EntityChange => ({
        key,
        timeUs: fromUs + n,
        ...(n === 0 ? { birth: true } : {}),
        cells: new Map([
          [`5/e${n}`, bytes("")],
          ...(n < 3 ? [] : [[`5/e${n - 3}`, undefined] as const]),
          ["6/counter", bytes(`${n}`)],
        ]),
      });
      await inOrder(ELEMENTS, step);
      await write(step(ELEMENTS - 10), step(0));
      const last = [3, 2, 1].map((back) => `5/e${ELEMENTS - back}`);
      expect(Object.keys(await valuesOf(objects(), key)).sort()).toEqual([...last, "6/counter"].sort());
      expect((await valuesOf(objects(), key))["6/counter"]).toBe(`${ELEMENTS - 1}`);
      // Discards warnings about cells removed within the last minute, which the cluster still reads.
      warnings();
    },
    TIMEOUT_MS,
  );
}

function rebornObjectsContract({ subject, objects, warnings, write, inOrder, find }: AgeSubject): void {
  test(
    "many objects that were removed and inserted again, life after life, are found by what their last life has",
    async () => {
      const cid = uniqueCid();
      const [value, former] = [uniqueName("a4=now"), uniqueName("a4=before")];
      const keys = Array.from({ length: OBJECTS }, (_, n) => ({ cid, id: `o${n}` }));
      const target = { cid, id: "target" };
      const fromUs = subject().clock.nowMs() * 1_000;
      await write({ key: target, timeUs: fromUs, birth: true });
      for (let life = 0; life < LIVES; life += 1) {
        const born = fromUs + 10 * life;
        const isLast = life === LIVES - 1;
        await inOrder(OBJECTS, (n) => ({
          key: keys[n]!,
          timeUs: born + 1,
          birth: true,
          cells: new Map([["1", bytes(`life ${life}`)]]),
          addTerms: [isLast ? value : former, `c${cid}`],
          addEdges: [{ type: "to", to: target }],
        }));
        if (!isLast)
          await inOrder(OBJECTS, (n) => ({
            key: keys[n]!,
            timeUs: born + 2,
            death: true,
            dropTerms: [former, `c${cid}`],
          }));
      }
      const ids = keys.map(({ id }) => id).sort();
      expect(await find([value], 70)).toEqual(ids);
      expect(await find([`c${cid}`], 70)).toEqual(ids);
      expect(await find([former], 70)).toEqual([]);
      expect(await valuesOf(objects(), keys[7]!)).toEqual({ "1": `life ${LIVES - 1}` });
      const edges = await all(90, (page) => objects().edges(target, "in", page));
      expect(edges.map(({ from }) => from.id).sort()).toEqual(ids);
      await inOrder(OBJECTS, (n) => ({ key: keys[n]!, timeUs: fromUs + 10 * LIVES, death: true }));
      expect(await all(90, (page) => objects().edges(target, "in", page))).toEqual([]);
      expect(warnings()).toEqual([]);
    },
    TIMEOUT_MS,
  );
}

async function valuesOf(objects: ObjectStore, key: EntityKey): Promise<Readonly<Record<string, string>>> {
  const [entity] = await again(() => objects.get([key]));
  const { cells } = entity ?? expect.fail("It is not there.");
  return Object.fromEntries(cells.keys.map((name) => [name, text(cells.get(name)!.value)]));
}
