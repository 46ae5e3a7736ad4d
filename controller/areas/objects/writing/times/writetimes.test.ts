import { describe, expect, test } from "vitest";
import type { Row } from "../../../../../common/value.ts";
import { realClock } from "../../../../../test/helpers/time/clock.ts";
import {
  admin,
  BOX,
  objects,
  calls,
  useWriters,
  found,
  equal,
  valuesOf,
} from "../../../../../test/helpers/objects/write-world.ts";

useWriters();

describe("a write whose time was settled before", () => {
  const add = (step: string) => [{ column: "steps", operation: "add", value: [step] }] as const;
  const size = (value: number) => [{ column: "size", operation: "set", value }] as const;

  test("changes nothing when it is made again, and loses to a later one", async () => {
    await objects.createClass(admin, { ...BOX, indexes: ["size"] });
    await objects.unrestricted.insert(admin, BOX.path, [{ name: "a", size: 0, steps: ["x"] }]);
    const ref = { id: "box:a" };
    const [writeUs = 0, other, fresh] = await objects.unrestricted.writeTimes(admin, [ref, ref, undefined]);
    expect([other, fresh]).toEqual([writeUs, writeUs]);
    for (let attempt = 0; attempt < 2; attempt++) {
      await objects.unrestricted.update(admin, ref, [...size(1), ...add("y")], { writeUs });
      expect(await valuesOf("box:a")).toMatchObject({ size: 1, steps: ["x", "y"] });
    }
    await objects.unrestricted.update(admin, ref, size(2));
    await objects.unrestricted.update(admin, ref, size(1), { writeUs });
    expect(await valuesOf("box:a")).toMatchObject({ size: 2 });
    expect([await found(equal("size", 1)), await found(equal("size", 2))]).toEqual([[], ["box:a"]]);
  });

  test("gets a later one, and tells it first, only where it would lose what it adds to a list", async () => {
    await objects.createClass(admin, BOX);
    await objects.unrestricted.insert(admin, BOX.path, [{ name: "a", steps: ["x"] }]);
    const ref = { id: "box:a" };
    const [writeUs = 0] = await objects.unrestricted.writeTimes(admin, [ref]);
    const told: number[] = [];
    const retimed = (us: number): Promise<void> => Promise.resolve(void told.push(us));
    await objects.unrestricted.update(admin, ref, size(1), { writeUs, retimed });
    await objects.unrestricted.update(admin, ref, [...add("other"), { column: "ports", operation: "set", value: [5] }]);
    await objects.unrestricted.update(admin, ref, [{ column: "ports", operation: "add", value: [1] }], {
      writeUs,
      retimed,
    });
    await objects.unrestricted.update(admin, ref, size(2), { writeUs, retimed });
    expect(told).toEqual([]);
    await objects.unrestricted.update(admin, ref, add("mine"), { writeUs, retimed });
    expect(told).toEqual([expect.any(Number)]);
    expect(told[0]).toBeGreaterThan(writeUs);
    expect(await valuesOf("box:a")).toMatchObject({ steps: ["x", "other", "mine"], ports: [5] });
  });

  test("below later ones is put into the versions at its place; a class without versions reads none for it", async () => {
    const atMs = realClock.nowMs() - 60_000;
    await objects.createClass(admin, BOX);
    await objects.unrestricted.insert(admin, BOX.path, [{ name: "a", size: 2 }]);
    await objects.unrestricted.insert(admin, BOX.path, [{ name: "a", size: 1, note: "late" }], { atMs });
    expect(calls).not.toContain("history");
    expect(await valuesOf("box:a")).toMatchObject({ size: 2, note: "late" });
    await objects.alterClass(admin, BOX.path, { kind: "set options", options: { version: true } });
    await objects.unrestricted.insert(admin, BOX.path, [{ name: "b", size: 2 }]);
    await objects.unrestricted.insert(admin, BOX.path, [{ name: "b", size: 1, note: "late" }], { atMs });
    const sizes: Row[] = [];
    for await (const page of objects.unrestricted.history(admin, { id: "box:b" }))
      sizes.push(...page.map(({ values }) => values ?? {}));
    expect(sizes).toMatchObject([{ size: 2 }, { size: 1, note: "late" }]);
  });
});
