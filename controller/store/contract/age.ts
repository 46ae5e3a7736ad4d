import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { mapLimited } from "../../../common/concurrency.ts";
import { NUMBER_SLOTS } from "../../../common/limits.ts";
import type { EntityChange, EntityKey, NumberRange, ObjectStore } from "../objects.ts";
import {
  again,
  all,
  bytes,
  passTime,
  uniqueCid,
  uniqueName,
  type ContractSubject,
  type OpenSubject,
} from "./harness.ts";
import { agedContentContract } from "./aged-content.ts";
import { severalTermsContract } from "./terms.ts";

/**
 * Factor for the numbers of the short form. With a large factor Cassandra refuses what it only warns of in the short
 * form. `npm run soak` sets it.
 */
const AGE = Number(process.env.ODP_TEST_AGE ?? 1);
const REWRITES = 12 * AGE;
const WORDS_PER_REWRITE = 900;
const VERSIONS = 300 * AGE;
const EDGES = 400 * AGE;
const OBJECTS = 300;
const FLIPS = 5 * AGE;
const LIVES = 40 * AGE;
const NUMBERS = 1_000 * AGE;
const PASSERS_BY = 3_000 * AGE;
const STAYING = 40;
const TTL_MS = 1_000;
const AT_ONCE = 32;
const BATCH = 100;
const TIMEOUT_MS = 300_000 * AGE;

export interface AgeOptions {
  /** The store's warnings about reads since the last call; absent if a store has no warnings. */
  readonly warnings?: () => readonly string[];
  /** True if entities found by several terms have all of them. */
  readonly isExact?: boolean;
}

/** The promises for a fresh object also hold for an object that was changed for years. */
export function ageContract(name: string, open: OpenSubject, options: AgeOptions = {}): void {
  describe(`age: ${name}`, () => {
    let subject: ContractSubject;
    let objects: ObjectStore;
    let baseUs: number;
    beforeAll(async () => {
      subject = await open();
      objects = subject.store.objects;
      baseUs = subject.clock.nowMs() * 1_000;
    });
    afterAll(async () => subject?.close());

    severalTermsContract(() => subject, options);
    agedContentContract(() => subject, { age: AGE, timeoutMs: TIMEOUT_MS, warnings: options.warnings });

    const write = (...changes: EntityChange[]): Promise<void> => again(() => objects.change(changes));
    const find = async (terms: readonly string[], limit = 100): Promise<readonly string[]> => {
      const found = await all(limit, (page) => objects.find({ terms }, page));
      const ids = found.map(({ key }) => key.id);
      expect(new Set(ids).size, "each is found once").toBe(ids.length);
      return ids.sort();
    };
    const isThere = async (key: EntityKey): Promise<boolean> =>
      (await again(() => objects.get([key])))[0] !== undefined;
    const inOrder = async (count: number, step: (n: number) => EntityChange): Promise<void> => {
      for (let from = 0; from < count; from += BATCH)
        await write(...Array.from({ length: Math.min(BATCH, count - from) }, (_, n) => step(from + n)));
    };
    /** A class of its own with two objects; nothing happens to the neighbour. */
    const fresh = async (): Promise<{
      cid: number;
      key: EntityKey;
      neighbour: EntityKey;
      mark: string;
      kind: string;
    }> => {
      const cid = uniqueCid();
      const [key, neighbour] = [
        { cid, id: "aged" },
        { cid, id: "neighbour" },
      ];
      const [mark, kind] = [uniqueName("a7=mark"), `c${cid}`];
      for (const one of [key, neighbour])
        await write({ key: one, timeUs: baseUs + 1, birth: true, addTerms: [mark, kind], numbers: new Map([[0, 1]]) });
      return { cid, key, neighbour, mark, kind };
    };
    const holds = async ({ key, neighbour, mark, kind }: Awaited<ReturnType<typeof fresh>>): Promise<void> => {
      options.warnings?.();
      expect(await isThere(key)).toBe(true);
      for (const terms of [[mark], [kind], [mark, kind]])
        expect(await find(terms), terms.join(" and ")).toEqual([key.id, neighbour.id]);
      expect(await find([mark], 1)).toEqual([key.id, neighbour.id]);
      const ranged = await all(10, (page) =>
        objects.find({ terms: [kind], ranges: [{ slot: 0, from: 1, to: 1 }] }, page),
      );
      expect(ranged.map(({ key: { id } }) => id).sort()).toEqual([key.id, neighbour.id]);
      expect(options.warnings?.() ?? []).toEqual([]);
    };

    test(
      "an object whose words are new with every change is read, found by its words and its value, and not by former ones",
      async () => {
        const aged = await fresh();
        const mark = uniqueName("w");
        const words = (n: number): string[] =>
          Array.from({ length: WORDS_PER_REWRITE }, (_, at) => `${mark}-${n}-${at}`);
        for (let n = 0; n < REWRITES; n += 1)
          await write({
            key: aged.key,
            timeUs: baseUs + 10 + n,
            cells: new Map([["1", bytes(`text ${n}`)]]),
            addTerms: words(n),
            ...(n === 0 ? {} : { dropTerms: words(n - 1) }),
          });
        await holds(aged);
        const last = words(REWRITES - 1);
        expect(await find(last.slice(0, 3))).toEqual([aged.key.id]);
        expect(await find([...last.slice(-2), aged.kind])).toEqual([aged.key.id]);
        expect(await find([words(REWRITES - 2)[0]!])).toEqual([]);
      },
      TIMEOUT_MS,
    );

    test(
      "an object with many versions and edges both ways is found, and they are read page by page",
      async () => {
        const aged = await fresh();
        const { cid, key } = aged;
        await inOrder(VERSIONS, (n) => ({ key, timeUs: baseUs + 10 + n, version: bytes(`v${n}`) }));
        const versions = await all(400, (page) => objects.history(key, {}, page));
        expect(versions.map(({ timeUs }) => timeUs - baseUs - 10)).toEqual(
          Array.from({ length: VERSIONS }, (_, n) => VERSIONS - 1 - n),
        );
        await inOrder(EDGES, (n) => ({
          key,
          timeUs: baseUs + VERSIONS + 20 + n,
          addEdges: [{ type: n % 2 === 0 ? "even" : "odd", to: { cid: cid + 1, id: `t${n}` } }],
        }));
        await inOrder(EDGES, (n) => ({
          key: { cid: cid + 1, id: `s${n}` },
          timeUs: baseUs + 20,
          birth: true,
          addEdges: [{ type: "to", to: key }],
        }));
        await holds(aged);
        const out = await all(700, (page) => objects.edges(key, "out", page));
        expect(new Set(out.map(({ to }) => to.id)).size).toBe(EDGES);
        expect(await all(700, (page) => objects.edges(key, "out", { ...page, type: "odd" }))).toHaveLength(EDGES / 2);
        expect(await all(700, (page) => objects.edges(key, "in", page))).toHaveLength(EDGES);
        await inOrder(EDGES - 1, (n) => ({
          key,
          timeUs: baseUs + VERSIONS + EDGES + 30 + n,
          dropEdges: [{ type: n % 2 === 0 ? "even" : "odd", to: { cid: cid + 1, id: `t${n}` } }],
        }));
        expect((await all(10, (page) => objects.edges(key, "out", page))).map(({ to }) => to.id)).toEqual([
          `t${EDGES - 1}`,
        ]);
        await holds(aged);
      },
      TIMEOUT_MS,
    );

    test(
      "an object whose numbers change again and again is found by those it has, in the first slot and the last",
      async () => {
        const aged = await fresh();
        const last = NUMBER_SLOTS - 1;
        await inOrder(NUMBERS, (n) => ({
          key: aged.key,
          timeUs: baseUs + 10 + n,
          numbers: new Map([
            [0, n],
            [last, n % 7 === 0 ? undefined : -n],
          ]),
        }));
        const final = NUMBERS + 1;
        await write({
          key: aged.key,
          timeUs: baseUs + 10 + final,
          numbers: new Map([
            [0, 1],
            [last, final],
          ]),
        });
        await holds(aged);
        const found = async (range: NumberRange): Promise<readonly string[]> =>
          (await all(10, (page) => objects.find({ terms: [aged.kind], ranges: [range] }, page))).map(
            ({ key: { id } }) => id,
          );
        expect(await found({ slot: last, from: final, to: final })).toEqual([aged.key.id]);
        expect(await found({ slot: last, to: 0 })).toEqual([]);
        expect(await found({ slot: 0, from: 2 })).toEqual([]);
        expect(options.warnings?.() ?? []).toEqual([]);
      },
      TIMEOUT_MS,
    );

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
              timeUs: baseUs + 10 + flip,
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

    test(
      "an object that was removed and inserted again many times is what it was inserted as last",
      async () => {
        const aged = await fresh();
        const { key, mark, kind } = aged;
        const former = uniqueName("a8=former");
        const edge = { type: "lived", to: aged.neighbour };
        for (let life = 0; life < LIVES; life += 1) {
          const timeUs = baseUs + 10 + 2 * life;
          await write({ key, timeUs, death: true, forgetHistory: true });
          await write({
            key,
            timeUs: timeUs + 1,
            birth: true,
            cells: new Map([[`${life % 50}`, bytes("alive")]]),
            addTerms: life === LIVES - 1 ? [mark, kind] : [mark, kind, `${former}${life}`],
            numbers: new Map([[0, 1]]),
            version: bytes("alive"),
            ...(life === LIVES - 1 ? {} : { addEdges: [edge] }),
          });
        }
        await holds(aged);
        const [entity] = await again(() => objects.get([key]));
        expect(entity?.cells.keys).toEqual([`${(LIVES - 1) % 50}`]);
        expect(await find([`${former}${LIVES - 2}`])).toEqual([]);
        expect(await all(10, (page) => objects.edges(key, "out", page))).toEqual([]);
        expect(await all(10, (page) => objects.edges(aged.neighbour, "in", page))).toEqual([]);
        expect(await all(10, (page) => objects.history(key, {}, page))).toHaveLength(1);
      },
      TIMEOUT_MS,
    );

    test(
      "objects that took a value once and left it, by a change, by their removal or by their end, do not hide those that have it",
      async () => {
        const cid = uniqueCid();
        const [value, next] = [uniqueName("a5=here"), uniqueName("a5=gone")];
        const keys = Array.from({ length: PASSERS_BY }, (_, n) => ({ cid, id: `p${n}` }));
        const inBatches = async (
          some: readonly EntityKey[],
          change: (key: EntityKey) => EntityChange,
        ): Promise<void> => {
          const batches = Array.from({ length: Math.ceil(some.length / AT_ONCE) }, (_, n) =>
            some.slice(n * AT_ONCE, (n + 1) * AT_ONCE),
          );
          await mapLimited(batches, 2, (batch) => write(...batch.map(change)));
        };
        await inBatches(keys, (key) => ({ key, timeUs: baseUs + 1, birth: true, addTerms: [value, `c${cid}`] }));
        expect(await find([value], 1_000)).toEqual(keys.map(({ id }) => id).sort());
        const third = Math.ceil(PASSERS_BY / 3);
        const [leaving, removed] = [keys.slice(STAYING, third), keys.slice(third, 2 * third)];
        const ended = keys.slice(2 * third);
        await inBatches(leaving, (key) => ({ key, timeUs: baseUs + 2, addTerms: [next], dropTerms: [value] }));
        await inBatches(removed, (key) => ({ key, timeUs: baseUs + 2, death: true, dropTerms: [value] }));
        await inBatches(ended, (key) => ({
          key,
          timeUs: baseUs + 2,
          birth: true,
          addTerms: [value, `c${cid}`],
          expiresAtMs: subject.clock.nowMs() + TTL_MS,
        }));
        await passTime(subject, TTL_MS + 1_000, async () => {
          const left = await again(() => objects.get(ended.slice(-BATCH)));
          return left.every((entity) => entity === undefined);
        });
        const staying = keys
          .slice(0, STAYING)
          .map(({ id }) => id)
          .sort();
        for (const limit of [7, 1_000]) expect(await find([value], limit)).toEqual(staying);
        expect(await find([value, `c${cid}`])).toEqual(staying);
        const living = [...staying, ...leaving.map(({ id }) => id)].sort();
        expect(await find([`c${cid}`], 1_000)).toEqual(living);
      },
      TIMEOUT_MS,
    );
  });
}
