import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  CELL_MAX_BYTES,
  CHANGE_BATCH_MAX,
  OBJECT_ID_MAX_BYTES,
  OBJECT_PAGE_MAX,
  TERM_MAX_BYTES,
  TERMS_PER_OBJECT_MAX,
} from "../../../common/limits.ts";
import { cellMap, isChosen } from "../cells.ts";
import type { CellChoice, Entity, EntityChange, EntityKey, FindRequest, ObjectStore } from "../objects.ts";
import {
  again,
  all,
  bytes,
  passTime,
  same,
  text,
  uniqueCid,
  uniqueName,
  type ContractSubject,
  type OpenSubject,
} from "./harness.ts";
import { endsContract } from "./ends.ts";
import { objectsModelTest } from "./objects-model.ts";
import { recordsContract } from "./records.ts";
import { slotsContract } from "./slots.ts";

const TTL_MS = 2_000;
const VERSIONS_WRITTEN = 40;

/** All promises of `ObjectStore`, for any engine. */
export function objectsContract(name: string, open: OpenSubject): void {
  describe(`ObjectStore: ${name}`, () => {
    let subject: ContractSubject;
    let objects: ObjectStore;
    /** A write time that real writers could use; tests add to it. */
    let baseUs: number;
    beforeAll(async () => {
      subject = await open();
      objects = subject.store.objects;
      baseUs = subject.clock.nowMs() * 1_000;
    });
    afterAll(async () => subject.close());

    const at = (offset: number): number => baseUs + offset;
    const write = (...changes: EntityChange[]): Promise<void> => again(() => objects.change(changes));
    const read = async (key: EntityKey): Promise<Entity | undefined> => (await again(() => objects.get([key])))[0];
    const values = async (key: EntityKey): Promise<Record<string, string> | undefined> => {
      const entity = await read(key);
      return entity && Object.fromEntries([...cellMap(entity.cells)].map(([cell, { value }]) => [cell, text(value)]));
    };
    const newKey = (): EntityKey => ({ cid: uniqueCid(), id: uniqueName("o") });
    const cells = (entries: Record<string, string | undefined>): ReadonlyMap<string, Uint8Array | undefined> =>
      new Map(Object.entries(entries).map(([cell, value]) => [cell, value === undefined ? undefined : bytes(value)]));
    const find = async (request: FindRequest, limit = 100): Promise<readonly string[]> =>
      [...new Set((await all(limit, (page) => objects.find(request, page))).map((entity) => entity.key.id))].sort();

    describe("times", () => {
      test("an entity is there from its birth, with what was written before it too", async () => {
        const key = newKey();
        await write({ key, timeUs: at(20), cells: cells({ "1": "early" }) });
        expect(await read(key)).toBeUndefined();
        await write({ key, timeUs: at(10), birth: true, cells: cells({ "1": "at birth", "2": "two" }) });
        const entity = await read(key);
        expect(entity).toMatchObject({ key, birthUs: at(10) });
        expect(entity!.lastUs).toBeGreaterThanOrEqual(at(20));
        expect(entity!.cells.get("1")).toMatchObject({ timeUs: at(20) });
        expect(await values(key)).toEqual({ "1": "early", "2": "two" });
      });

      test("the later time wins in whatever order writes arrive", async () => {
        const key = newKey();
        await write({ key, timeUs: at(1), birth: true });
        await write({ key, timeUs: at(30), cells: cells({ "1": "c", "2": undefined }) });
        await write({ key, timeUs: at(20), cells: cells({ "1": "b", "2": "b" }) });
        expect(await values(key)).toEqual({ "1": "c" });
        await write({ key, timeUs: at(40), cells: cells({ "1": undefined, "2": "d" }) });
        await write({ key, timeUs: at(35), cells: cells({ "1": "x" }) });
        expect(await values(key)).toEqual({ "2": "d" });
      });

      test("at equal times the greater bytes win, and removal over a value", async () => {
        const key = newKey();
        await write({ key, timeUs: at(1), birth: true });
        await write({ key, timeUs: at(5), cells: cells({ "1": "b", "2": "a", "3": "x", "4": undefined }) });
        await write({ key, timeUs: at(5), cells: cells({ "1": "a", "2": "b", "3": undefined, "4": "x" }) });
        expect(await values(key)).toEqual({ "1": "b", "2": "b" });
      });

      test("repeating a change changes nothing", async () => {
        const key = newKey();
        const term = uniqueName("term");
        const change: EntityChange = {
          key,
          timeUs: at(5),
          birth: true,
          cells: cells({ "1": "a" }),
          addTerms: [term],
          numbers: new Map([[0, 7]]),
          addEdges: [{ type: "is", to: { cid: 1, id: "x" } }],
          version: bytes("v"),
        };
        await write(change);
        const first = await read(key);
        await write(change, change);
        await write({ key, timeUs: at(9), cells: cells({ "1": "b" }) });
        await write(change);
        expect({ ...plain((await read(key))!), cells: undefined, lastUs: 0 }).toEqual({
          ...plain(first!),
          cells: undefined,
          lastUs: 0,
        });
        expect(await values(key)).toEqual({ "1": "b" });
        expect(await find({ terms: [term] })).toEqual([key.id]);
        expect(await all(10, (page) => objects.history(key, {}, page))).toEqual([{ timeUs: at(5), value: bytes("v") }]);
        expect(await all(10, (page) => objects.edges(key, "out", page))).toHaveLength(1);
      });

      test("a death covers what is not later; a late update revives nobody, a later birth begins afresh", async () => {
        const key = newKey();
        const [term, number] = [uniqueName("mortal"), new Map([[1, 5]])];
        await write({
          key,
          timeUs: at(10),
          birth: true,
          cells: cells({ "1": "a", "2": "b" }),
          addTerms: [term],
          numbers: number,
        });
        await write({ key, timeUs: at(20), death: true });
        expect(await read(key)).toBeUndefined();
        expect(await find({ terms: [term] })).toEqual([]);
        await write({ key, timeUs: at(15), cells: cells({ "1": "late" }), addTerms: [term] });
        await write({ key, timeUs: at(25), cells: cells({ "3": "after" }) });
        expect(await read(key)).toBeUndefined();
        await write({ key, timeUs: at(20), birth: true });
        expect(await read(key)).toBeUndefined();
        await write({ key, timeUs: at(30), birth: true, cells: cells({ "1": "new" }) });
        expect(await values(key)).toEqual({ "1": "new", "3": "after" });
        expect((await read(key))!.numbers[1]).toBeUndefined();
        expect(await find({ terms: [term] })).toEqual([]);
      });

      test("of what does not exist it is known when it was written or removed last, and what was written after that", async () => {
        const key = newKey();
        const trace = async () => {
          const { entity, lastUs, leftover } = (await again(() => objects.trace([key])))[0]!;
          return { entity: entity && plain(entity), lastUs, leftover: cellMap(leftover) };
        };
        expect(await trace()).toEqual({ entity: undefined, lastUs: 0, leftover: new Map() });
        await write({ key, timeUs: at(10), birth: true, cells: cells({ "1": "a" }) });
        await write({ key, timeUs: at(12), numbers: new Map([[0, 7]]) });
        expect(await trace()).toEqual({ entity: plain((await read(key))!), lastUs: at(12), leftover: new Map() });
        expect((await read(key))!.lastUs).toBe(at(12));
        await write({ key, timeUs: at(20), death: true });
        expect(await trace()).toEqual({ entity: undefined, lastUs: at(20), leftover: new Map() });
        await write({ key, timeUs: at(25), cells: cells({ "3": "after" }) });
        const { lastUs, leftover } = await trace();
        expect(lastUs).toBe(at(25));
        expect([...leftover].map(([name, { timeUs, value }]) => [name, timeUs, text(value)])).toEqual([
          ["3", at(25), "after"],
        ]);
        await write({ key, timeUs: at(25), cells: cells({ "3": undefined }) }, { key, timeUs: at(30), birth: true });
        expect(await values(key)).toEqual({});
      });

      test("a death that arrives after a later birth leaves it alone", async () => {
        const key = newKey();
        await write({ key, timeUs: at(10), birth: true, cells: cells({ "1": "old" }) });
        await write({ key, timeUs: at(30), birth: true, cells: cells({ "2": "new" }) });
        await write({ key, timeUs: at(20), death: true });
        expect(await values(key)).toEqual({ "2": "new" });
      });

      test("two writers that add different elements both succeed", async () => {
        const key = newKey();
        await write({ key, timeUs: at(1), birth: true });
        await Promise.all(
          Array.from({ length: 20 }, (_, i) =>
            write({ key, timeUs: at(10 + (i % 3)), cells: cells({ [`17/e${i}`]: "1" }) }),
          ),
        );
        expect(Object.keys((await values(key))!).sort()).toEqual(
          Array.from({ length: 20 }, (_, i) => `17/e${i}`).sort(),
        );
      });

      test("a batch holds many entities, and one of them more than once", async () => {
        const cid = uniqueCid();
        const keys = Array.from({ length: 150 }, (_, i) => ({ cid, id: `n${i}` }));
        const births = keys.map(
          (key): EntityChange => ({ key, timeUs: at(1), birth: true, cells: cells({ "1": key.id }) }),
        );
        await write(...births, { key: keys[3]!, timeUs: at(2), cells: cells({ "1": "again" }) });
        const found = await again(() => objects.get([keys[7]!, { cid, id: "nobody" }, keys[3]!]));
        expect(found.map((entity) => entity && text(entity.cells.get("1")!.value))).toEqual(["n7", undefined, "again"]);
      });
    });

    describe("find", () => {
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
          const entities = await all(3, (page) => objects.find({ terms: [mark], ranges: [range] }, page));
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
        while (cursor === undefined) cursor = (await again(() => objects.find({ terms: [mark] }, { limit: 1 }))).cursor;
        const invalid = { code: "invalid" };
        const wrong = cursor;
        await expect(
          again(() => objects.find({ terms: [`${mark} other`] }, { limit: 1, cursor: wrong })),
        ).rejects.toMatchObject(invalid);
        await expect(again(() => objects.scan({ limit: 1, cursor: wrong }))).rejects.toMatchObject(invalid);
        for (const garbage of ["", "garbage", "~~~~", cursor.slice(0, -3), `${cursor}AAAA`]) {
          await expect(
            again(() => objects.find({ terms: [mark] }, { limit: 1, cursor: garbage })),
          ).rejects.toMatchObject(invalid);
        }
        for (const limit of [0, -1, 1.5, OBJECT_PAGE_MAX + 1])
          await expect(again(() => objects.find({ terms: [mark] }, { limit }))).rejects.toMatchObject(invalid);
        await expect(again(() => objects.find({ terms: [] }, { limit: 1 }))).rejects.toMatchObject(invalid);
      });
    });

    test("a scan meets every living entity once", async () => {
      const cid = uniqueCid();
      const ids = Array.from({ length: 30 }, (_, i) => `s${String(i).padStart(2, "0")}`);
      await write(...ids.map((id): EntityChange => ({ key: { cid, id }, timeUs: at(1), birth: true })));
      await write(
        { key: { cid, id: "s07" }, timeUs: at(2), death: true },
        { key: { cid, id: "unborn" }, timeUs: at(2), cells: cells({ "1": "x" }) },
      );
      const met = (await all(13, (page) => objects.scan(page)))
        .filter((entity) => entity.key.cid === cid)
        .map((entity) => entity.key.id);
      expect(met.sort()).toEqual(ids.filter((id) => id !== "s07"));
    });

    describe("chosen cells", () => {
      test("those that are asked for are there, and all that is told of the whole entity", async () => {
        const mark = uniqueName("chosen");
        const cid = uniqueCid();
        const keys = ["one", "two"].map((id) => ({ cid, id }));
        const many = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`${100 + n}`, `v${n}`]));
        for (const key of keys) {
          const entries = cells({ ...many, "7": "seven", "7/red": "r", "7/": "empty", "70": "seventy", "8/a": "a" });
          const change = { key, timeUs: at(5), birth: true as const, addTerms: [mark, `c${cid}`], cells: entries };
          await write({ ...change, numbers: new Map([[1, 4]]) });
          await write({ key, timeUs: at(9), cells: cells({ "129": "later", "8/b": "b" }) });
        }
        const choices: readonly CellChoice[] = [
          { keys: [], prefixes: [] },
          { keys: ["7", "none"], prefixes: [] },
          { keys: ["7", "8"], prefixes: ["7/", "8/", "9/"] },
          { keys: Object.keys(many), prefixes: ["7/"] },
        ];
        for (const choice of choices) {
          const plain = (entities: readonly (Entity | undefined)[]): readonly unknown[] =>
            entities.map((entity) => ({
              key: entity?.key,
              birthUs: entity?.birthUs,
              lastUs: entity?.lastUs,
              numbers: entity?.numbers,
              cells: new Map(entity && [...cellMap(entity.cells)].filter(([key]) => isChosen(key, choice))),
            }));
          const whole = await again(() => objects.get(keys));
          expect(plain(await again(() => objects.get(keys, choice)))).toEqual(plain(whole));
          for (const request of [
            { terms: [mark] },
            { terms: [`c${cid}`] },
            { terms: [`c${cid}`], ranges: [{ slot: 1, from: 4, to: 4 }] },
          ]) {
            const found = await all(1, (page) => objects.find({ ...request, cells: choice }, page));
            const sorted = [...found].sort((a, b) => (a.key.id < b.key.id ? -1 : 1));
            expect(plain(sorted)).toEqual(plain(whole));
          }
        }
      });

      test("the time of the latest write is told also where only a cell still knows it", async () => {
        const key = newKey();
        const mark = uniqueName("untimed");
        await write({ key, timeUs: at(5), birth: true, addTerms: [mark], cells: cells({ "1": "a", "2": "b" }) });
        const expiresAtMs = subject.clock.nowMs() + TTL_MS;
        await write({ key, timeUs: at(9), cells: cells({ "3": "passing" }), expiresAtMs });
        await passTime(subject, TTL_MS + 1_000, async () => (await values(key))?.["3"] === undefined);
        const whole = await read(key);
        const choice = { keys: ["1"], prefixes: [] };
        const [got] = await again(() => objects.get([key], choice));
        const [found] = await all(1, (page) => objects.find({ terms: [mark], cells: choice }, page));
        expect([got?.lastUs, found?.lastUs]).toEqual([whole?.lastUs, whole?.lastUs]);
      });
    });

    describe("history", () => {
      test("versions are newest first, by range, and outlive the entity", async () => {
        const key = newKey();
        for (const i of [3, 1, 5, 2, 4])
          await write({ key, timeUs: at(i * 10), ...(i === 1 ? { birth: true } : {}), version: bytes(`v${i}`) });
        const versions = async (fromUs?: number, toUs?: number, limit = 2): Promise<readonly string[]> => {
          const range = { ...(fromUs === undefined ? {} : { fromUs }), ...(toUs === undefined ? {} : { toUs }) };
          return (await all(limit, (page) => objects.history(key, range, page))).map((version) => text(version.value));
        };
        expect(await versions()).toEqual(["v5", "v4", "v3", "v2", "v1"]);
        expect(await versions(at(20), at(40), 10)).toEqual(["v4", "v3", "v2"]);
        expect(await versions(at(41))).toEqual(["v5"]);
        expect(await versions(undefined, at(19))).toEqual(["v1"]);
        await write({ key, timeUs: at(60), death: true, version: bytes("last") });
        expect(await versions()).toEqual(["last", "v5", "v4", "v3", "v2", "v1"]);
        await write({ key, timeUs: at(70), death: true, forgetHistory: true });
        expect(await versions()).toEqual([]);
        await expect(write({ key, timeUs: at(80), forgetHistory: true })).rejects.toMatchObject({ code: "invalid" });
      });
    });

    describe("edges", () => {
      test("are seen from both ends, by type, until dropped or their source dies", async () => {
        const cid = uniqueCid();
        const [a, b, c] = ["a", "b", "c"].map((id) => ({ cid, id })) as [EntityKey, EntityKey, EntityKey];
        await write(...[a, b].map((key): EntityChange => ({ key, timeUs: at(1), birth: true })));
        await write({
          key: a,
          timeUs: at(2),
          addEdges: [
            { type: "owns", to: b, value: bytes("e") },
            { type: "owns", to: c },
            { type: "likes", to: b },
          ],
        });
        await write({ key: b, timeUs: at(2), addEdges: [{ type: "owns", to: c }] });
        const out = async (key: EntityKey, type?: string): Promise<readonly string[]> => ends(key, "out", type);
        const ends = async (key: EntityKey, direction: "out" | "in", type?: string): Promise<readonly string[]> => {
          const found = await all(2, (page) =>
            objects.edges(key, direction, type === undefined ? page : { ...page, type }),
          );
          return found
            .map(
              (edge) =>
                `${edge.from.id} ${edge.type} ${edge.to.id}${edge.value === undefined ? "" : ` ${text(edge.value)}`}`,
            )
            .sort();
        };
        expect(await out(a)).toEqual(["a likes b", "a owns b e", "a owns c"]);
        expect(await out(a, "owns")).toEqual(["a owns b e", "a owns c"]);
        expect(await ends(c, "in")).toEqual(["a owns c", "b owns c"]);
        expect(await ends(b, "in", "likes")).toEqual(["a likes b"]);
        await write(
          { key: a, timeUs: at(4), dropEdges: [{ type: "owns", to: b }] },
          { key: a, timeUs: at(3), addEdges: [{ type: "owns", to: b }] },
        );
        expect(await out(a, "owns")).toEqual(["a owns c"]);
        expect(await ends(b, "in", "owns")).toEqual([]);
        await write({ key: a, timeUs: at(10), death: true });
        expect(await out(a)).toEqual([]);
        expect(await ends(c, "in")).toEqual(["b owns c"]);
        await write({ key: a, timeUs: at(11), birth: true });
        expect(await out(a)).toEqual([]);
        await write({ key: a, timeUs: at(12), addEdges: [{ type: "owns", to: b, value: bytes("again") }] });
        expect(await ends(b, "in", "owns")).toEqual(["a owns b again"]);
      });

      test("between ids of full length", async () => {
        const cid = uniqueCid();
        const [from, to] = ["f", "t"].map((id) => ({ cid, id: id.repeat(OBJECT_ID_MAX_BYTES) })) as [
          EntityKey,
          EntityKey,
        ];
        await write({
          key: from,
          timeUs: at(1),
          birth: true,
          addEdges: [{ type: "long", to }],
          addTerms: [uniqueName("full")],
          numbers: new Map([[0, 1]]),
          version: bytes("v"),
        });
        expect((await all(5, (page) => objects.edges(to, "in", page))).map((edge) => edge.from)).toEqual([from]);
      });
    });

    describe("ttl", () => {
      test("what expires is gone, with its terms and numbers; the rest stays", async () => {
        const key = newKey();
        const term = uniqueName("passing");
        await write({ key, timeUs: at(1), birth: true, cells: cells({ "1": "stays" }) });
        await write({
          key,
          timeUs: at(2),
          cells: cells({ "2": "goes" }),
          addTerms: [term],
          numbers: new Map([[1, 9]]),
          expiresAtMs: subject.clock.nowMs() + TTL_MS,
        });
        expect(await values(key)).toEqual({ "1": "stays", "2": "goes" });
        // Each part ends separately, within one second, because Cassandra counts whole seconds.
        await passTime(subject, TTL_MS + 1_000, async () => {
          const left = Object.keys((await values(key)) ?? {}).length;
          return (
            left === 1 && (await read(key))?.numbers[1] === undefined && (await find({ terms: [term] })).length === 0
          );
        });
        expect(await values(key)).toEqual({ "1": "stays" });
        expect((await read(key))!.numbers[1]).toBeUndefined();
        expect(await find({ terms: [term] })).toEqual([]);
      });

      test("a term that is set again with a later end is found until that one", async () => {
        const key = newKey();
        const term = uniqueName("prolonged");
        const nowMs = subject.clock.nowMs();
        const set = { key, birth: true, cells: cells({ "1": "a" }), addTerms: [term] } as const;
        await write({ ...set, timeUs: at(1), expiresAtMs: nowMs + TTL_MS });
        await write({ ...set, timeUs: at(2), expiresAtMs: nowMs + 1_000 * TTL_MS });
        const brief = newKey();
        await write({ key: brief, timeUs: at(1), birth: true, expiresAtMs: nowMs + TTL_MS });
        await passTime(subject, TTL_MS + 1_000, async () => (await read(brief)) === undefined);
        expect(await values(key)).toEqual({ "1": "a" });
        expect(await find({ terms: [term] })).toEqual([key.id]);
      });

      test("a change that expires takes no version and no edge of an earlier one along", async () => {
        const key = newKey();
        const edge = { type: "stays", to: newKey() };
        await write({ key, timeUs: at(1), birth: true });
        await write({ key, timeUs: at(2), version: bytes("stays"), addEdges: [edge] });
        await write({
          key,
          timeUs: at(3),
          cells: cells({ "1": "goes" }),
          expiresAtMs: subject.clock.nowMs() + TTL_MS,
        });
        await passTime(subject, TTL_MS + 1_000, async () => Object.keys((await values(key)) ?? {}).length === 0);
        expect((await all(5, (page) => objects.history(key, {}, page))).map(({ timeUs }) => timeUs)).toEqual([at(2)]);
        for (const [end, direction] of [
          [key, "out"],
          [edge.to, "in"],
        ] as const)
          expect(await all(5, (page) => objects.edges(end, direction, page))).toHaveLength(1);
      });

      test("versions vanish when a later change ended them, but those that stay and the newest one", async () => {
        const key = newKey();
        const kept = async () =>
          (await all(2, (page) => objects.history(key, {}, page))).map(({ value }) => text(value));
        const first: EntityChange = { key, timeUs: at(1), birth: true, version: bytes("first") };
        await write(first);
        await write({ key, timeUs: at(2), version: bytes("stays"), versionStays: true });
        await write({ key, timeUs: at(3), version: bytes("third") });
        const ending = {
          key,
          timeUs: at(4),
          version: bytes("fourth"),
          endVersionsAtMs: subject.clock.nowMs() + TTL_MS,
        };
        await write(ending);
        expect(await kept()).toEqual(["fourth", "third", "stays", "first"]);
        await write(first);
        await write(ending);
        await passTime(subject, TTL_MS + 1_000, async () => (await kept()).length === 2);
        expect(await kept()).toEqual(["fourth", "stays"]);
        await write(first);
        expect((await kept()).slice(0, 2)).toEqual(["fourth", "stays"]);
        await write({ ...ending, timeUs: at(5), version: bytes("fifth"), endVersionsAtMs: subject.clock.nowMs() });
        await passTime(subject, 1_000, async () => (await kept()).length === 2);
        expect(await kept()).toEqual(["fifth", "stays"]);
      });

      test(`of ${VERSIONS_WRITTEN} versions that each end the ones before the newest is left, across days`, async () => {
        const key = newKey();
        const dayUs = 86_400_000_000;
        await write({ key, timeUs: at(0), birth: true });
        for (let n = 1; n <= VERSIONS_WRITTEN; n += 1) {
          const timeUs = at(n) + Math.floor(n / 8) * dayUs;
          const endVersionsAtMs = subject.clock.nowMs() + TTL_MS;
          await write({ key, timeUs, version: bytes(`${n}`), endVersionsAtMs });
        }
        const kept = () => all(9, (page) => objects.history(key, {}, page));
        await passTime(subject, TTL_MS + 1_000, async () => (await kept()).length === 1);
        expect((await kept()).map(({ value }) => text(value))).toEqual([`${VERSIONS_WRITTEN}`]);
      });

      test("a birth mark that vanishes takes the entity along", async () => {
        const key = newKey();
        const term = uniqueName("brief");
        const expiresAtMs = subject.clock.nowMs() + TTL_MS;
        await write({
          key,
          timeUs: at(1),
          birth: true,
          cells: cells({ "1": "a" }),
          addTerms: [term],
          addEdges: [{ type: "e", to: key }],
          expiresAtMs,
        });
        expect(await find({ terms: [term] })).toEqual([key.id]);
        await passTime(subject, TTL_MS + 1_000, async () => {
          const edges = await all(5, (page) => objects.edges(key, "in", page));
          return (await read(key)) === undefined && edges.length === 0;
        });
        expect(await read(key)).toBeUndefined();
        expect(await find({ terms: [term] })).toEqual([]);
        expect(await all(5, (page) => objects.edges(key, "in", page))).toEqual([]);
      });
    });

    test("limits are kept and named", async () => {
      const key = newKey();
      const refused = async (change: Partial<EntityChange>, code: string): Promise<void> => {
        await expect(write({ key, timeUs: at(1), birth: true, ...change })).rejects.toMatchObject({ code });
      };
      await refused({ key: { cid: 1, id: "x".repeat(OBJECT_ID_MAX_BYTES + 1) } }, "too_large");
      await refused({ cells: new Map([["1", new Uint8Array(CELL_MAX_BYTES + 1)]]) }, "too_large");
      await refused({ addTerms: Array.from({ length: TERMS_PER_OBJECT_MAX + 1 }, (_, i) => `t${i}`) }, "too_large");
      await refused({ numbers: new Map([[99, 1]]) }, "invalid");
      await refused({ timeUs: 0.5 }, "invalid");
      const many = Array.from({ length: CHANGE_BATCH_MAX + 1 }, () => ({ key, timeUs: at(1), birth: true as const }));
      await expect(again(() => objects.change(many))).rejects.toMatchObject({ code: "too_large" });
      expect(await read(key)).toBeUndefined();
      const greatest = new Uint8Array(CELL_MAX_BYTES).fill(9);
      await write({ key, timeUs: at(2), birth: true, cells: new Map([["1", greatest]]) });
      expect(same((await read(key))!.cells.get("1")!.value, greatest)).toBe(true);
    });

    test("tenants do not see each other", async () => {
      const key = newKey();
      const term = uniqueName("secret");
      await write({ key, timeUs: at(1), birth: true, cells: cells({ "1": "mine" }), addTerms: [term] });
      const other = subject.other.objects;
      expect(await again(() => other.get([key]))).toEqual([undefined]);
      expect(await all(5, (page) => other.find({ terms: [term] }, page))).toEqual([]);
      await again(() => other.change([{ key, timeUs: at(5), death: true }]));
      expect(await values(key)).toEqual({ "1": "mine" });
    });

    endsContract(() => subject);
    slotsContract(() => subject);
    recordsContract(() => subject);
    objectsModelTest(name, () => subject);
  });
}

/** All readable parts of an entity, for comparison. */
function plain({ key, birthUs, lastUs, diedUs, cells, numbers }: Entity): object {
  return { key, birthUs, lastUs, diedUs, numbers, cells: cellMap(cells) };
}
