import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { AUDIT_CLOCK_SLACK_MS, AUDIT_HEAD_INTERVAL_MS, AUDIT_MARK_INTERVAL_MS } from "../../../common/limits.ts";
import { AuditWorld, madePlain } from "../../../test/helpers/areas/audit-world.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";

let engine: TestEngine;
beforeAll(async () => {
  engine = await openTestEngine();
});
afterAll(() => engine.close());

let world: AuditWorld;
beforeEach(async () => {
  world = new AuditWorld(engine);
  await world.forgetHeads();
});

const records = () => world.trail.records;

describe("a trail that an earlier version made", () => {
  async function earlier(): Promise<void> {
    const old = world.controller({ hasHeads: false });
    await world.write(old, 4);
    records().splice(0, 4, ...madePlain(records()));
    world.clock.advance(1_000);
    await world.write(world.controller({ hasHeads: false }), 4);
    world.clock.advance(1_000);
  }

  test("verifies as before, and it is told what cannot be noticed", async () => {
    await earlier();
    const report = await world.verify();
    expect(report).toMatchObject({ entries: 8, unkeyed: 4, uncovered: 0, beforeHeads: 8, problems: [] });
    expect(report.notes.join("\n")).toMatch(/8 entries are of runs that an earlier version made, without sealed heads/);
    records().splice(0, 2);
    expect(await world.verify()).toMatchObject({ problems: [] });
    const one = world.controller();
    await world.write(one);
    await one.audit.writeHeads();
    await world.write(one, 2);
    expect(await world.verify()).toMatchObject({ beforeHeads: 6, uncovered: 2, problems: [] });
  });

  test("has heads after the upgrade: what is removed then is noticed", async () => {
    await earlier();
    const whole = [...records()];
    const one = world.controller();
    one.audit.maintain("matrix");
    await one.audit.adopted();
    expect(await world.verify()).toMatchObject({ beforeHeads: 8, uncovered: 0, problems: [] });
    for (const [at, kind] of [
      [0, "missing"],
      [3, "truncated"],
      [4, "missing"],
      [7, "truncated"],
    ] as const) {
      records().splice(at, 1);
      expect((await world.verify()).first, `entry ${at}`).toMatchObject({ kind });
      records().splice(0, Infinity, ...whole);
    }
  });

  test("has no more plain digests after the change to keyed ones, whose time is sealed", async () => {
    await earlier();
    const forged = (timeMs: number) =>
      madePlain([{ ...records()[7]!, run: "ab".repeat(12), sequence: 1, user: "forged", timeMs }]);
    const one = world.controller();
    await world.write(one);
    const openedMs = world.clock.nowMs();
    expect((await world.heads.read("matrix")).register?.keyedSinceMs).toBe(openedMs);
    const whole = [...records()];
    world.clock.advance(1_000);
    records().push(...forged(world.clock.nowMs()));
    expect((await world.verify()).first).toMatchObject({ kind: "unkeyed", run: "ab".repeat(12) });
    records().splice(0, Infinity, ...whole);
    one.audit.maintain("matrix");
    await one.audit.adopted();
    const plainMs = records()[3]?.timeMs ?? 0;
    expect((await world.heads.read("matrix")).register?.keyedSinceMs, "of the newest plain one").toBe(plainMs);
    expect(await world.verify()).toMatchObject({ unkeyed: 4, problems: [] });
    records().splice(4, 0, ...forged(plainMs));
    expect((await world.verify()).first, "also when it is dated back").toMatchObject({ kind: "unkeyed" });
  });

  test("is sealed for each day, on both sides of a silence", async () => {
    const old = world.controller({ hasHeads: false });
    for (const hours of [0, 12, 9 * 24, 12, 12]) {
      world.clock.advance(hours * 3_600_000);
      await world.write(old);
    }
    const one = world.controller();
    one.audit.maintain("matrix");
    await one.audit.adopted();
    const [head] = [...(await world.storedHeads()).values()];
    expect(head).toMatchObject({ last: 5 });
    const times = records().map(({ timeMs }) => timeMs);
    const sequences = head?.marks.map(({ sequence }) => sequence) ?? [];
    // No entry is more than a day after a mark.
    for (const [at, timeMs] of times.entries()) {
      const before = sequences.filter((sequence) => sequence <= at + 1).map((sequence) => times[sequence - 1] ?? 0);
      expect(timeMs - Math.max(...before), `entry ${at + 1}`).toBeLessThan(AUDIT_MARK_INTERVAL_MS);
    }
  });

  test("gets no more runs of that version, also not one that was there before it was sealed", async () => {
    await earlier();
    const again = records().splice(4, 4);
    const one = world.controller();
    world.clock.advance(2 * AUDIT_CLOCK_SLACK_MS);
    one.audit.maintain("matrix");
    await one.audit.adopted();
    expect(await world.verify()).toMatchObject({ problems: [] });
    records().push(...again);
    expect((await world.verify()).first).toMatchObject({ kind: "added", sequence: 1 });
  });

  test("is sealed once, also by two controllers that read it at the same time", async () => {
    await earlier();
    const again = records().splice(4, 4);
    world.clock.advance(2 * AUDIT_CLOCK_SLACK_MS);
    const [first, second] = [world.controller(), world.controller()];
    await world.write(first);
    await world.write(second);
    const read = world.trail.read.bind(world.trail);
    vi.spyOn(world.trail, "read").mockImplementationOnce(async function* (tenant) {
      first.audit.maintain(tenant);
      await first.audit.adopted();
      records().push(...again);
      yield* read(tenant);
    });
    second.audit.maintain("matrix");
    await second.audit.adopted();
    expect((await world.verify()).first).toMatchObject({ kind: "added", sequence: 1 });
  });

  test("has entries of controllers that are not upgraded yet", async () => {
    const [old, upgraded] = [world.controller({ hasHeads: false }), world.controller()];
    await world.write(old, 3);
    upgraded.audit.maintain("matrix");
    await upgraded.audit.adopted();
    for (let minute = 0; minute < 10; minute++) {
      world.clock.advance(AUDIT_HEAD_INTERVAL_MS);
      await world.write(old);
      await world.write(upgraded);
      await upgraded.audit.writeHeads();
    }
    await world.write(world.controller({ hasHeads: false }), 2);
    expect(await world.verify()).toMatchObject({ beforeHeads: 15, uncovered: 12, problems: [] });
  });
});
