import { describe, expect, test } from "vitest";
import { OBJECT_ID_MAX_BYTES } from "../../../../common/limits.ts";
import type { EntityChange, EntityKey } from "../../objects.ts";
import { all, bytes, text, uniqueCid, uniqueName } from "../harness.ts";
import type { ObjectsSubject } from "./subject.ts";

/** Edges between entities. */
export function edgesContract({ objects, at, write }: ObjectsSubject): void {
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
          objects().edges(key, direction, type === undefined ? page : { ...page, type }),
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
      expect((await all(5, (page) => objects().edges(to, "in", page))).map((edge) => edge.from)).toEqual([from]);
    });
  });
}
