import { encodeTime } from "ulid";
import { describe, expect, test } from "vitest";
import type { EntityChange, EntityKey, StoredRecord } from "../objects.ts";
import { again, all, bytes, passTime, text, uniqueCid, uniqueName, type ContractSubject } from "./harness.ts";

const BATCH = 100;
const TTL_MS = 1_000;
const TIME_DIGITS = 10;
const DAY_MS = 24 * 3_600_000;

export interface AgedContentOptions {
  /** Factor for the numbers of the short form. */
  readonly age: number;
  readonly timeoutMs: number;
  readonly warnings?: (() => readonly string[]) | undefined;
}

/** The part of the *age* contract about cells, records and lives. */
export function agedContentContract(subject: () => ContractSubject, options: AgedContentOptions): void {
  const { age, timeoutMs, warnings = () => [] } = options;
  const [CHANGES, ELEMENTS, RECORDS, OBJECTS, LIVES] = [10_000 * age, 400 * age, 1_500 * age, 200, 3 * age];
  describe("content", () => {
    const atUs = (n: number): number => subject().clock.nowMs() * 1_000 + n;
    const write = (...changes: EntityChange[]): Promise<void> => again(() => subject().store.objects.change(changes));
    const inOrder = async (count: number, step: (n: number) => EntityChange): Promise<void> => {
      for (let from = 0; from < count; from += BATCH)
        await write(...Array.from({ length: Math.min(BATCH, count - from) }, (_, n) => step(from + n)));
    };
    const valuesOf = async (key: EntityKey): Promise<Readonly<Record<string, string>>> => {
      const [entity] = await again(() => subject().store.objects.get([key]));
      const { cells } = entity ?? expect.fail("It is not there.");
      return Object.fromEntries(cells.keys.map((name) => [name, text(cells.get(name)!.value)]));
    };
    const find = async (term: string): Promise<readonly string[]> => {
      const found = await all(70, (page) => subject().store.objects.find({ terms: [term] }, page));
      return found.map(({ key }) => key.id).sort();
    };

    test(
      "an object that was changed ten thousand times has the last value of each attribute",
      async () => {
        const key = { cid: uniqueCid(), id: "changed" };
        const fromUs = atUs(0);
        await inOrder(CHANGES, (n) => ({
          key,
          timeUs: fromUs + n,
          ...(n === 0 ? { birth: true } : {}),
          cells: new Map([[`${n % 7}`, n % 70 === 69 ? undefined : bytes(`v${n}`)]]),
        }));
        const expected: Record<string, string> = {};
        for (let n = CHANGES - 7; n < CHANGES; n += 1) if (n % 70 !== 69) expected[`${n % 7}`] = `v${n}`;
        expect(await valuesOf(key)).toEqual(expected);
        expect(warnings()).toEqual([]);
      },
      timeoutMs,
    );

    test(
      "a set whose elements come and go has those that came last, and one that is repeated late brings none back",
      async () => {
        const key = { cid: uniqueCid(), id: "set" };
        const fromUs = atUs(0);
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
        expect(Object.keys(await valuesOf(key)).sort()).toEqual([...last, "6/counter"].sort());
        expect((await valuesOf(key))["6/counter"]).toBe(`${ELEMENTS - 1}`);
        // Discards warnings about cells removed within the last minute, which the cluster still reads.
        warnings();
      },
      timeoutMs,
    );

    test(
      "many objects that were removed and inserted again, life after life, are found by what their last life has",
      async () => {
        const cid = uniqueCid();
        const [value, former] = [uniqueName("a4=now"), uniqueName("a4=before")];
        const keys = Array.from({ length: OBJECTS }, (_, n) => ({ cid, id: `o${n}` }));
        const target = { cid, id: "target" };
        const fromUs = atUs(0);
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
        expect(await find(value)).toEqual(ids);
        expect(await find(`c${cid}`)).toEqual(ids);
        expect(await find(former)).toEqual([]);
        expect(await valuesOf(keys[7]!)).toEqual({ "1": `life ${LIVES - 1}` });
        const edges = await all(90, (page) => subject().store.objects.edges(target, "in", page));
        expect(edges.map(({ from }) => from.id).sort()).toEqual(ids);
        await inOrder(OBJECTS, (n) => ({ key: keys[n]!, timeUs: fromUs + 10 * LIVES, death: true }));
        expect(await all(90, (page) => subject().store.objects.edges(target, "in", page))).toEqual([]);
        expect(warnings()).toEqual([]);
      },
      timeoutMs,
    );

    test(
      "records between very many that were removed or have ended are read, counted and found",
      async () => {
        const cid = uniqueCid();
        const { objects } = subject().store;
        const startMs = subject().clock.nowMs();
        const id = (n: number): string => encodeTime(startMs + n, TIME_DIGITS) + `${n}`.padStart(16, "0");
        const records = Array.from(
          { length: RECORDS },
          (_, n): StoredRecord => ({
            cid,
            id: id(n),
            value: bytes(`r${n}`),
            terms: ["all", n % 50 === 0 ? "stays" : "goes"],
            ...(n % 2 === 1 ? { expiresAtMs: subject().clock.nowMs() + TTL_MS } : {}),
          }),
        );
        for (let from = 0; from < RECORDS; from += BATCH)
          await again(() => objects.append(records.slice(from, from + BATCH)));
        const removed = records.filter((_, n) => n % 2 === 0 && n % 50 !== 0);
        for (let from = 0; from < removed.length; from += BATCH)
          await again(() => objects.removeRecords(removed.slice(from, from + BATCH)));
        await again(() => objects.append(removed.slice(0, BATCH)));
        const span = { cid, fromMs: startMs - DAY_MS, toMs: startMs + DAY_MS };
        const read = async (terms: readonly string[]): Promise<readonly string[]> =>
          (await all(40, (page) => objects.timeline({ ...span, terms }, page))).map(({ value }) => text(value));
        const staying = Array.from({ length: RECORDS / 50 }, (_, n) => `r${50 * n}`).reverse();
        await passTime(subject(), TTL_MS + 1_000, async () => (await read(["goes"])).length === 0);
        for (const terms of [[], ["all"], ["stays"]]) expect(await read(terms), terms.join()).toEqual(staying);
        let [count, cursor] = [0, undefined as string | undefined];
        do {
          const part = await again(() => objects.countRecords(span, cursor));
          count += part.count;
          cursor = part.cursor;
        } while (cursor !== undefined);
        expect(count).toBe(staying.length);
      },
      timeoutMs,
    );
  });
}
