import { describe, expect, test } from "vitest";
import type { EntityChange } from "../../objects.ts";
import { all, bytes, passTime, text, uniqueName } from "../harness.ts";
import { cellsOf, newKey, type ObjectsSubject, TTL_MS } from "./subject.ts";

const VERSIONS_WRITTEN = 40;

/** Parts of entities that expire, and versions that later changes end. */
export function expiryContract(store: ObjectsSubject): void {
  describe("ttl", () => {
    expiringPartsContract(store);
    expiringBirthContract(store);
    endedVersionsContract(store);
  });
}

function expiringPartsContract({ subject, objects, at, write, read, values, find }: ObjectsSubject): void {
  test("what expires is gone, with its terms and numbers; the rest stays", async () => {
    const key = newKey();
    const term = uniqueName("passing");
    await write({ key, timeUs: at(1), birth: true, cells: cellsOf({ "1": "stays" }) });
    await write({
      key,
      timeUs: at(2),
      cells: cellsOf({ "2": "goes" }),
      addTerms: [term],
      numbers: new Map([[1, 9]]),
      expiresAtMs: subject().clock.nowMs() + TTL_MS,
    });
    expect(await values(key)).toEqual({ "1": "stays", "2": "goes" });
    // Each part ends separately, within one second, because Cassandra counts whole seconds.
    await passTime(subject(), TTL_MS + 1_000, async () => {
      const left = Object.keys((await values(key)) ?? {}).length;
      return left === 1 && (await read(key))?.numbers[1] === undefined && (await find({ terms: [term] })).length === 0;
    });
    expect(await values(key)).toEqual({ "1": "stays" });
    expect((await read(key))!.numbers[1]).toBeUndefined();
    expect(await find({ terms: [term] })).toEqual([]);
  });

  test("a term that is set again with a later end is found until that one", async () => {
    const key = newKey();
    const term = uniqueName("prolonged");
    const nowMs = subject().clock.nowMs();
    const set = { key, birth: true, cells: cellsOf({ "1": "a" }), addTerms: [term] } as const;
    await write({ ...set, timeUs: at(1), expiresAtMs: nowMs + TTL_MS });
    await write({ ...set, timeUs: at(2), expiresAtMs: nowMs + 1_000 * TTL_MS });
    const brief = newKey();
    await write({ key: brief, timeUs: at(1), birth: true, expiresAtMs: nowMs + TTL_MS });
    await passTime(subject(), TTL_MS + 1_000, async () => (await read(brief)) === undefined);
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
      cells: cellsOf({ "1": "goes" }),
      expiresAtMs: subject().clock.nowMs() + TTL_MS,
    });
    await passTime(subject(), TTL_MS + 1_000, async () => Object.keys((await values(key)) ?? {}).length === 0);
    expect((await all(5, (page) => objects().history(key, {}, page))).map(({ timeUs }) => timeUs)).toEqual([at(2)]);
    for (const [end, direction] of [
      [key, "out"],
      [edge.to, "in"],
    ] as const)
      expect(await all(5, (page) => objects().edges(end, direction, page))).toHaveLength(1);
  });
}

function expiringBirthContract({ subject, objects, at, write, read, find }: ObjectsSubject): void {
  test("a birth mark that vanishes takes the entity along", async () => {
    const key = newKey();
    const term = uniqueName("brief");
    const expiresAtMs = subject().clock.nowMs() + TTL_MS;
    await write({
      key,
      timeUs: at(1),
      birth: true,
      cells: cellsOf({ "1": "a" }),
      addTerms: [term],
      addEdges: [{ type: "e", to: key }],
      expiresAtMs,
    });
    expect(await find({ terms: [term] })).toEqual([key.id]);
    await passTime(subject(), TTL_MS + 1_000, async () => {
      const edges = await all(5, (page) => objects().edges(key, "in", page));
      return (await read(key)) === undefined && edges.length === 0;
    });
    expect(await read(key)).toBeUndefined();
    expect(await find({ terms: [term] })).toEqual([]);
    expect(await all(5, (page) => objects().edges(key, "in", page))).toEqual([]);
  });
}

function endedVersionsContract({ subject, objects, at, write }: ObjectsSubject): void {
  test("versions vanish when a later change ended them, but those that stay and the newest one", async () => {
    const key = newKey();
    const kept = async () => (await all(2, (page) => objects().history(key, {}, page))).map(({ value }) => text(value));
    const first: EntityChange = { key, timeUs: at(1), birth: true, version: bytes("first") };
    await write(first);
    await write({ key, timeUs: at(2), version: bytes("stays"), versionStays: true });
    await write({ key, timeUs: at(3), version: bytes("third") });
    const ending = {
      key,
      timeUs: at(4),
      version: bytes("fourth"),
      endVersionsAtMs: subject().clock.nowMs() + TTL_MS,
    };
    await write(ending);
    expect(await kept()).toEqual(["fourth", "third", "stays", "first"]);
    await write(first);
    await write(ending);
    await passTime(subject(), TTL_MS + 1_000, async () => (await kept()).length === 2);
    expect(await kept()).toEqual(["fourth", "stays"]);
    await write(first);
    expect((await kept()).slice(0, 2)).toEqual(["fourth", "stays"]);
    await write({ ...ending, timeUs: at(5), version: bytes("fifth"), endVersionsAtMs: subject().clock.nowMs() });
    await passTime(subject(), 1_000, async () => (await kept()).length === 2);
    expect(await kept()).toEqual(["fifth", "stays"]);
  });

  test(`of ${VERSIONS_WRITTEN} versions that each end the ones before the newest is left, across days`, async () => {
    const key = newKey();
    const dayUs = 86_400_000_000;
    await write({ key, timeUs: at(0), birth: true });
    for (let n = 1; n <= VERSIONS_WRITTEN; n += 1) {
      const timeUs = at(n) + Math.floor(n / 8) * dayUs;
      const endVersionsAtMs = subject().clock.nowMs() + TTL_MS;
      await write({ key, timeUs, version: bytes(`${n}`), endVersionsAtMs });
    }
    const kept = () => all(9, (page) => objects().history(key, {}, page));
    await passTime(subject(), TTL_MS + 1_000, async () => (await kept()).length === 1);
    expect((await kept()).map(({ value }) => text(value))).toEqual([`${VERSIONS_WRITTEN}`]);
  });
}
