import { describe, expect, test } from "vitest";
import { all, bytes, text } from "../harness.ts";
import { newKey, type ObjectsSubject } from "./subject.ts";

/** Versions of an entity. */
export function historyContract({ objects, at, write }: ObjectsSubject): void {
  describe("history", () => {
    test("versions are newest first, by range, and outlive the entity", async () => {
      const key = newKey();
      for (const i of [3, 1, 5, 2, 4])
        await write({ key, timeUs: at(i * 10), ...(i === 1 ? { birth: true } : {}), version: bytes(`v${i}`) });
      const versions = async (fromUs?: number, toUs?: number, limit = 2): Promise<readonly string[]> => {
        const range = { ...(fromUs === undefined ? {} : { fromUs }), ...(toUs === undefined ? {} : { toUs }) };
        return (await all(limit, (page) => objects().history(key, range, page))).map((version) => text(version.value));
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
}
