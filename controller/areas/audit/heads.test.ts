import { pino } from "pino";
import { describe, expect, test, vi } from "vitest";
import { AppError } from "../../../common/errors.ts";
import {
  AUDIT_HEAD_INTERVAL_MS,
  AUDIT_HEADS_TOGETHER_MAX,
  AUDIT_KEEP_SECONDS,
  AUDIT_MARK_INTERVAL_MS,
} from "../../../common/limits.ts";
import {
  AuditWorld,
  REGISTER_KEY,
  engine,
  world,
  records,
  useAuditWorld,
} from "../../../test/helpers/areas/audit-world.ts";
import type { Stores } from "../../store/engine.ts";
import type { KvStore } from "../../store/kv.ts";
import { auditArea } from "./area.ts";
import { HEADS_LATE } from "./types.ts";

useAuditWorld();

/** Stores in which only the tenant's KvStore is changed. */
function withKv(change: (kv: KvStore) => Partial<KvStore>): Stores {
  return {
    system: () => engine.system(),
    tenant: async (name) => {
      const store = await engine.tenant(name);
      const { kv } = store;
      const all = { get: kv.get.bind(kv), put: kv.put.bind(kv), delete: kv.delete.bind(kv), list: kv.list.bind(kv) };
      return { ...store, kv: { ...all, ...change(kv) } as KvStore };
    },
  };
}

/** A store that refuses heads on demand. */
function refusing() {
  let refuses = false;
  const stores = withKv((kv) => ({
    put: (...put) => (refuses ? Promise.reject(new AppError("unavailable", "no space")) : kv.put(...put)),
  }));
  return { stores, fail: (value: boolean): void => void (refuses = value) };
}

describe("heads are sealed", () => {
  test("at the beginning of a run, every minute in which there were entries, at its end, and never per entry", async () => {
    const { audit } = world.controller();
    audit.start();
    await audit.adopted();
    await Promise.all(Array.from({ length: 700 }, () => audit.write(world.entry())));
    await expect.poll(() => world.version()).toBe(2);
    await Promise.all(Array.from({ length: 700 }, () => audit.write(world.entry())));
    await expect.poll(() => world.clock.waiting).toBe(1);
    expect(await world.version()).toBe(2);
    world.clock.advance(AUDIT_HEAD_INTERVAL_MS);
    await expect.poll(() => world.version()).toBe(3);
    await expect.poll(() => world.clock.waiting).toBe(1);
    world.clock.advance(AUDIT_HEAD_INTERVAL_MS);
    await audit.write(world.entry());
    await audit.close();
    expect(await world.version(), "nothing in a minute without entries").toBe(4);
    const [head] = [...(await world.storedHeads()).values()];
    const newest = records().at(-1);
    expect(head).toMatchObject({ run: newest?.run, last: 1_401, hash: newest?.hash, timeMs: newest?.timeMs });
    expect(head?.marks).toEqual([{ sequence: 1, timeMs: records()[0]?.timeMs }]);
    expect(await world.verify()).toMatchObject({ entries: 1_401, uncovered: 0, problems: [] });
  });

  test("by several controllers at once, and none is lost", async () => {
    const controllers = Array.from({ length: 8 }, () => world.controller());
    await Promise.all(controllers.map((one) => world.write(one, 3)));
    await Promise.all(controllers.map(({ audit }) => audit.close()));
    expect((await world.storedHeads()).size).toBe(8);
    expect(await world.verify()).toMatchObject({ runs: 8, uncovered: 0, problems: [] });
  });

  test("with the first entry of each day that has not expired", async () => {
    const one = world.controller();
    const days: number[] = [];
    for (let day = 0; day < 4; day++) {
      days.push(world.clock.nowMs());
      await world.write(one, 2);
      world.clock.advance(AUDIT_MARK_INTERVAL_MS);
    }
    await one.audit.writeHeads();
    const marks = async () => [...(await world.storedHeads()).values()].flatMap((head) => head.marks);
    expect(await marks()).toEqual(days.map((timeMs, day) => ({ sequence: 1 + 2 * day, timeMs })));
    world.clock.advance(AUDIT_KEEP_SECONDS * 1_000 - 2 * AUDIT_MARK_INTERVAL_MS);
    await world.write(one);
    await one.audit.writeHeads();
    expect((await marks()).map(({ sequence }) => sequence)).toEqual([7, 9]);
  });

  test("of a run that ended, while its entries are kept and not after", async () => {
    const one = world.controller();
    await world.write(one);
    world.trail.broken = true;
    await expect(world.write(one)).rejects.toMatchObject({ code: "unavailable" });
    world.trail.broken = false;
    await world.write(one);
    await one.audit.writeHeads();
    expect([...(await world.storedHeads()).keys()]).toEqual(records().map(({ run }) => run));
    world.clock.advance(AUDIT_KEEP_SECONDS * 1_000 + 2 * AUDIT_MARK_INTERVAL_MS);
    records().splice(0);
    await world.write(one);
    await one.audit.writeHeads();
    expect([...(await world.storedHeads()).keys()]).toEqual(records().map(({ run }) => run));
  });

  test("when the controller stops", async () => {
    const one = world.controller();
    await world.write(one);
    await expect.poll(async () => (await world.storedHeads()).size).toBe(1);
    await world.write(one, 2);
    expect(await world.verify()).toMatchObject({ entries: 3, uncovered: 2 });
    await auditArea(one.audit).close?.();
    expect(await world.verify()).toMatchObject({ entries: 3, uncovered: 0, problems: [] });
  });

  test("for a trail without entries so that nothing counts as made before, however it is read", async () => {
    vi.spyOn(world.trail, "read").mockImplementationOnce(async function* () {
      yield await Promise.resolve([]);
    });
    await world.write(world.controller());
    const nowMs = world.clock.nowMs();
    expect((await world.heads.read("matrix")).register).toMatchObject({ adoptedMs: nowMs, keyedSinceMs: 0 });
  });

  test("of what belongs to no tenant, in the system store", async () => {
    const installation = new AuditWorld(engine, "");
    const one = installation.controller();
    await installation.write(one, 3);
    await one.audit.close();
    installation.trail.records.splice(0, 1);
    expect((await installation.verify()).first).toMatchObject({ kind: "missing", sequence: 1 });
  });

  test("of more runs than fit together in pages, which go when they have expired", async () => {
    const kv = await world.kv();
    const runs = AUDIT_HEADS_TOGETHER_MAX + 10;
    for (let run = 0; run < runs; run++) {
      const one = world.controller();
      await world.write(one);
      await one.audit.writeHeads();
    }
    expect(await world.verify()).toMatchObject({ runs, uncovered: 0, problems: [] });
    const { register } = await world.heads.read("matrix");
    const newer = records().slice(AUDIT_HEADS_TOGETHER_MAX / 2 + 1);
    expect(new Set(register?.heads.map(({ run }) => run)), "the older half").toEqual(
      new Set(newer.map(({ run }) => run)),
    );
    const pages = (await kv.list(`${REGISTER_KEY}/`)).entries;
    expect(pages, "full ones").toHaveLength(1);
    const [page] = pages;
    const [first] = records().splice(0, 1);
    expect((await world.verify()).first).toMatchObject({ kind: "truncated", run: first?.run, sequence: 1 });
    records().unshift(first!);
    await kv.delete(page?.key ?? "");
    expect((await world.verify()).first).toMatchObject({ kind: "heads", text: expect.stringContaining("Page") });
    // Sealed with the right key, but not that page.
    await kv.put(page?.key ?? "", (await kv.get(REGISTER_KEY))?.value ?? new Uint8Array());
    expect((await world.verify()).problems).toContainEqual(expect.stringMatching(/^Page .* was removed or changed/));
    await kv.put(page?.key ?? "", page?.value ?? new Uint8Array());
    world.clock.advance(AUDIT_KEEP_SECONDS * 1_000 + 2 * AUDIT_MARK_INTERVAL_MS);
    records().splice(0);
    const late = world.controller();
    await world.write(late);
    await late.audit.close();
    expect((await kv.list(`${REGISTER_KEY}/`)).entries).toEqual([]);
    expect(await world.verify()).toMatchObject({ runs: 1, problems: [] });
  });
});

describe("a controller that was killed", () => {
  test("between two heads leaves a sound trail, and it is told how many entries no head covers", async () => {
    const killed = world.controller();
    await world.write(killed, 2);
    await killed.audit.writeHeads();
    await world.write(killed, 3);
    const report = await world.verify();
    expect(report).toMatchObject({ entries: 5, uncovered: 3, problems: [] });
    expect(report.notes).toContainEqual(expect.stringMatching(/^No sealed head covers 3 entries: .*killed/));
    records().splice(1, 1);
    expect((await world.verify()).first).toMatchObject({ kind: "missing", sequence: 2 });
  });

  test("after heads could not be stored for long leaves a sound trail that says so", async () => {
    const said: unknown[] = [];
    const { stores, fail } = refusing();
    const log = pino({ level: "error" }, { write: (line: string) => void said.push(JSON.parse(line)) });
    Object.assign(world.runtime, { log });
    const one = world.controller({ stores });
    await world.write(one);
    await one.audit.writeHeads();
    fail(true);
    for (let minute = 0; minute < 20; minute++) {
      world.clock.advance(AUDIT_HEAD_INTERVAL_MS);
      await world.write(one);
      await one.audit.writeHeads();
    }
    expect(said).toEqual([expect.objectContaining({ msg: expect.stringContaining("NO NEW HEADS") })]);
    expect(one.audit.headsFailing).toBe(1);
    await expect.poll(async () => (await world.verify()).uncovered).toBe(21);
    expect(await world.verify()).toMatchObject({ problems: [] });
    const late = () => records().filter(({ action }) => action === HEADS_LATE).length;
    expect(late()).toBe(1);
    // A day after the first report.
    world.clock.advance(AUDIT_MARK_INTERVAL_MS - 19 * AUDIT_HEAD_INTERVAL_MS);
    await world.write(one);
    await one.audit.writeHeads();
    await expect.poll(late, { message: "once a day" }).toBe(2);
    fail(false);
    await one.audit.close();
    expect(one.audit.headsFailing).toBe(0);
    expect(await world.verify()).toMatchObject({ uncovered: 0, problems: [] });
  });

  test("after heads could not be stored leaves a trail that is sound when the entry that says so has expired", async () => {
    const { stores, fail } = refusing();
    const one = world.controller({ stores });
    await world.write(one);
    await one.audit.writeHeads();
    fail(true);
    for (let minute = 0; minute < 20; minute++) {
      world.clock.advance(AUDIT_HEAD_INTERVAL_MS);
      await world.write(one);
      await one.audit.writeHeads();
    }
    await expect.poll(() => records().length).toBe(22);
    world.clock.advance(AUDIT_KEEP_SECONDS * 1_000 - 15 * AUDIT_HEAD_INTERVAL_MS);
    records().splice(0, 7);
    expect(await world.verify()).toMatchObject({ entries: 15, problems: [] });
  });

  test("after heads could not be stored for days leaves a trail that is sound while it expires", async () => {
    const { stores, fail } = refusing();
    const one = world.controller({ stores });
    await world.write(one);
    await one.audit.writeHeads();
    fail(true);
    const excuses = () => records().filter(({ action }) => action === HEADS_LATE).length;
    for (let day = 0; day < 9; day += 3) {
      await world.write(one);
      await one.audit.writeHeads();
      await expect.poll(excuses).toBe(1 + day / 3);
      world.clock.advance(3 * AUDIT_MARK_INTERVAL_MS);
    }
    // The first day has expired; the next entries are of the fourth day.
    world.clock.advance(AUDIT_KEEP_SECONDS * 1_000 - 8 * AUDIT_MARK_INTERVAL_MS);
    records().splice(0, 3);
    expect(await world.verify()).toMatchObject({ entries: 4, problems: [] });
  });
});

test("a start looks at the newest entries, and at the heads of just these", async () => {
  const one = world.controller();
  for (let at = 0; at < 30; at++) {
    await world.write(one, 100);
    world.clock.advance(1_000);
  }
  await one.audit.close();
  const newest = () => world.controller().audit.verifyNewest("matrix");
  world.trail.pageEntries = 100;
  expect(await newest()).toMatchObject({ entries: 1_000, problems: [] });
  records().splice(0, 1);
  expect(await newest()).toMatchObject({ problems: [] });
  records().splice(-1, 1);
  expect((await newest()).first).toMatchObject({ kind: "truncated", sequence: 3_000 });
});
