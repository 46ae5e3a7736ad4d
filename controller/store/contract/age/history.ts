import { expect, test } from "vitest";
import { all, bytes } from "../harness.ts";
import { AGE, type AgeSubject, TIMEOUT_MS } from "./subject.ts";

const VERSIONS = 300 * AGE;
const EDGES = 400 * AGE;

/** Many versions, and many edges both ways. */
export function agedHistoryContract({ objects, baseUs, inOrder, fresh, holds }: AgeSubject): void {
  test(
    "an object with many versions and edges both ways is found, and they are read page by page",
    async () => {
      const aged = await fresh();
      const { cid, key } = aged;
      await inOrder(VERSIONS, (n) => ({ key, timeUs: baseUs() + 10 + n, version: bytes(`v${n}`) }));
      const versions = await all(400, (page) => objects().history(key, {}, page));
      expect(versions.map(({ timeUs }) => timeUs - baseUs() - 10)).toEqual(
        Array.from({ length: VERSIONS }, (_, n) => VERSIONS - 1 - n),
      );
      await inOrder(EDGES, (n) => ({
        key,
        timeUs: baseUs() + VERSIONS + 20 + n,
        addEdges: [{ type: n % 2 === 0 ? "even" : "odd", to: { cid: cid + 1, id: `t${n}` } }],
      }));
      await inOrder(EDGES, (n) => ({
        key: { cid: cid + 1, id: `s${n}` },
        timeUs: baseUs() + 20,
        birth: true,
        addEdges: [{ type: "to", to: key }],
      }));
      await holds(aged);
      const out = await all(700, (page) => objects().edges(key, "out", page));
      expect(new Set(out.map(({ to }) => to.id)).size).toBe(EDGES);
      expect(await all(700, (page) => objects().edges(key, "out", { ...page, type: "odd" }))).toHaveLength(EDGES / 2);
      expect(await all(700, (page) => objects().edges(key, "in", page))).toHaveLength(EDGES);
      await inOrder(EDGES - 1, (n) => ({
        key,
        timeUs: baseUs() + VERSIONS + EDGES + 30 + n,
        dropEdges: [{ type: n % 2 === 0 ? "even" : "odd", to: { cid: cid + 1, id: `t${n}` } }],
      }));
      expect((await all(10, (page) => objects().edges(key, "out", page))).map(({ to }) => to.id)).toEqual([
        `t${EDGES - 1}`,
      ]);
      await holds(aged);
    },
    TIMEOUT_MS,
  );
}
