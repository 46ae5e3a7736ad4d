import { expect, test } from "vitest";
import { again, all, bytes, uniqueName } from "../harness.ts";
import { AGE, type AgeSubject, TIMEOUT_MS } from "./subject.ts";

const LIVES = 40 * AGE;

/** Objects that were removed and inserted again. */
export function agedLivesContract({ objects, baseUs, write, find, fresh, holds }: AgeSubject): void {
  test(
    "an object that was removed and inserted again many times is what it was inserted as last",
    async () => {
      const aged = await fresh();
      const { key, mark, kind } = aged;
      const former = uniqueName("a8=former");
      const edge = { type: "lived", to: aged.neighbour };
      for (let life = 0; life < LIVES; life += 1) {
        const timeUs = baseUs() + 10 + 2 * life;
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
      const [entity] = await again(() => objects().get([key]));
      expect(entity?.cells.keys).toEqual([`${(LIVES - 1) % 50}`]);
      expect(await find([`${former}${LIVES - 2}`])).toEqual([]);
      expect(await all(10, (page) => objects().edges(key, "out", page))).toEqual([]);
      expect(await all(10, (page) => objects().edges(aged.neighbour, "in", page))).toEqual([]);
      expect(await all(10, (page) => objects().history(key, {}, page))).toHaveLength(1);
    },
    TIMEOUT_MS,
  );
}
