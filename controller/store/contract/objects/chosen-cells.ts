import { describe, expect, test } from "vitest";
import { cellMap, isChosen } from "../../cells.ts";
import type { CellChoice, Entity } from "../../objects.ts";
import { again, all, passTime, uniqueCid, uniqueName } from "../harness.ts";
import { cellsOf, newKey, type ObjectsSubject, TTL_MS } from "./subject.ts";

/** Reads with a `CellChoice`. */
export function chosenCellsContract({ subject, objects, at, write, read, values }: ObjectsSubject): void {
  describe("chosen cells", () => {
    test("those that are asked for are there, and all that is told of the whole entity", async () => {
      const mark = uniqueName("chosen");
      const cid = uniqueCid();
      const keys = ["one", "two"].map((id) => ({ cid, id }));
      const many = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`${100 + n}`, `v${n}`]));
      for (const key of keys) {
        const entries = cellsOf({ ...many, "7": "seven", "7/red": "r", "7/": "empty", "70": "seventy", "8/a": "a" });
        const change = { key, timeUs: at(5), birth: true as const, addTerms: [mark, `c${cid}`], cells: entries };
        await write({ ...change, numbers: new Map([[1, 4]]) });
        await write({ key, timeUs: at(9), cells: cellsOf({ "129": "later", "8/b": "b" }) });
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
        const whole = await again(() => objects().get(keys));
        expect(plain(await again(() => objects().get(keys, choice)))).toEqual(plain(whole));
        for (const request of [
          { terms: [mark] },
          { terms: [`c${cid}`] },
          { terms: [`c${cid}`], ranges: [{ slot: 1, from: 4, to: 4 }] },
        ]) {
          const found = await all(1, (page) => objects().find({ ...request, cells: choice }, page));
          const sorted = [...found].sort((a, b) => (a.key.id < b.key.id ? -1 : 1));
          expect(plain(sorted)).toEqual(plain(whole));
        }
      }
    });

    test("the time of the latest write is told also where only a cell still knows it", async () => {
      const key = newKey();
      const mark = uniqueName("untimed");
      await write({ key, timeUs: at(5), birth: true, addTerms: [mark], cells: cellsOf({ "1": "a", "2": "b" }) });
      const expiresAtMs = subject().clock.nowMs() + TTL_MS;
      await write({ key, timeUs: at(9), cells: cellsOf({ "3": "passing" }), expiresAtMs });
      await passTime(subject(), TTL_MS + 1_000, async () => (await values(key))?.["3"] === undefined);
      const whole = await read(key);
      const choice = { keys: ["1"], prefixes: [] };
      const [got] = await again(() => objects().get([key], choice));
      const [found] = await all(1, (page) => objects().find({ terms: [mark], cells: choice }, page));
      expect([got?.lastUs, found?.lastUs]).toEqual([whole?.lastUs, whole?.lastUs]);
    });
  });
}
