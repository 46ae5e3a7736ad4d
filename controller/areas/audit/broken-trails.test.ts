import { describe, expect, test } from "vitest";
import {
  AUDIT_CLOCK_SLACK_MS,
  AUDIT_HEAD_INTERVAL_MS,
  AUDIT_KEEP_SECONDS,
  AUDIT_MARK_INTERVAL_MS,
} from "../../../common/limits.ts";
import { REGISTER_KEY, world, records, useAuditWorld } from "../../../test/helpers/areas/audit-world.ts";
import { TEST_SECRETS, testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { secretBox } from "../../secrets/index.ts";
import { hashOf } from "./chain.ts";

useAuditWorld();

test("a run that lost all but its last entry is broken, anchored or not", async () => {
  const one = world.controller();
  await world.write(one, 10);
  await one.audit.close();
  await one.anchor();
  records().splice(0, 9);
  for (const anchored of [true, false])
    expect((await world.verify({ anchored })).problems).toEqual([
      expect.stringMatching(/^Entries 1 to 9 of run .* are missing at its beginning\.$/),
    ]);
});

test("a first entry that follows on another one, by who has the key, does not pass for the beginning of a run", async () => {
  await world.write(world.controller({ hasHeads: false }));
  const body = { ...records()[0]!, previous: "1".repeat(64) };
  records().splice(0, 1, { ...body, hash: hashOf(body, TEST_SECRETS) });
  expect((await world.verify()).first).toMatchObject({ kind: "missing", sequence: 1 });
});

test("an entry that the key dated after later ones is reordered, also of a run without a head", async () => {
  const one = world.controller({ hasHeads: false });
  for (let at = 0; at < 3; at++) {
    await world.write(one);
    world.clock.advance(1);
  }
  const body = { ...records().shift()!, timeMs: world.clock.nowMs() };
  records().push({ ...body, hash: hashOf(body, TEST_SECRETS) });
  expect(await world.verify()).toMatchObject({ first: { kind: "reordered", sequence: 1 }, problems: { length: 1 } });
});

test.each([
  { by: "head", hasHeads: true },
  { by: "anchor", hasHeads: false },
])("an end that was written anew with the key is noticed by its $by", async ({ by, hasHeads }) => {
  const one = world.controller({ hasHeads });
  await world.write(one, 3);
  await one.audit.close();
  await one.anchor();
  const body = { ...records()[2]!, user: "forged" };
  records().splice(2, 1, { ...body, hash: hashOf(body, TEST_SECRETS) });
  const report = await world.verify({ anchored: by === "anchor" });
  expect(report).toMatchObject({ first: { kind: "replaced", sequence: 3 }, problems: { length: 1 } });
});

test("a trail is sound on every day of its expiry, and broken by what was removed before", async () => {
  const one = world.controller();
  for (let day = 0; day < 5; day++) {
    await world.write(one, 5);
    await one.audit.writeHeads();
    world.clock.advance(AUDIT_MARK_INTERVAL_MS);
  }
  await one.audit.close();
  world.clock.advance(AUDIT_KEEP_SECONDS * 1_000 - 5 * AUDIT_MARK_INTERVAL_MS);
  for (let day = 0; day < 5; day++) {
    const keptMs = world.clock.nowMs() - AUDIT_KEEP_SECONDS * 1_000;
    const left = records().findIndex(({ timeMs }) => timeMs > keptMs);
    records().splice(0, left < 0 ? Infinity : left);
    expect((await world.verify()).problems, `day ${day}`).toEqual([]);
    // The entries of the day that expires next need not exist any more as soon as they begin to expire.
    const removed = records().splice(0, 6);
    if (removed.length === 6) expect((await world.verify()).first).toMatchObject({ kind: "missing" });
    records().unshift(...removed);
    world.clock.advance(AUDIT_MARK_INTERVAL_MS);
  }
});

describe("of a store in which trail and heads are put back together to an earlier state", () => {
  async function putBack(): Promise<void> {
    const kv = await world.kv();
    const one = world.controller();
    await world.write(one, 3);
    await one.audit.writeHeads();
    const earlier = await kv.get(REGISTER_KEY);
    await world.write(one, 3);
    await one.audit.close();
    await one.anchor();
    records().splice(3);
    await kv.put(REGISTER_KEY, earlier?.value ?? new Uint8Array());
  }

  test("a verification without an anchor notices nothing, and says that it cannot", async () => {
    await putBack();
    const { problems, notes } = await world.verify();
    expect(problems).toEqual([]);
    expect(notes).toEqual([expect.stringContaining("the trail and its sealed heads are put back together")]);
  });

  test("one with an anchor notices both", async () => {
    await putBack();
    const { problems, notes } = await world.verify({ anchored: true });
    expect([...problems].sort()).toEqual([
      expect.stringMatching(/^Entries 4 to 6 of run .* are cut off at its end\.$/),
      expect.stringContaining("they were put back or removed"),
    ]);
    expect(notes).toEqual([]);
  });
});

test("a cut of the end tells when its newest entry was there, by heads that are newer than the anchor", async () => {
  const one = world.controller();
  await world.write(one, 3);
  await one.anchor();
  world.clock.advance(AUDIT_HEAD_INTERVAL_MS);
  await world.write(one, 3);
  await one.audit.writeHeads();
  const newest = new Date(records().at(-1)?.timeMs ?? 0).toISOString();
  records().splice(3);
  const { problems } = await world.verify({ anchored: true });
  expect(problems).toContainEqual(expect.stringContaining(`which were there at ${newest}, are cut off`));
});

test("a controller whose key file lacks the key of the heads leaves them as they are, and says so", async () => {
  const one = world.controller();
  await world.write(one);
  await one.audit.close();
  const version = await world.version();
  const other = world.controller({ keys: secretBox([Buffer.alloc(32, 9)]) });
  await world.write(other);
  await other.audit.writeHeads();
  expect(other.audit.headsFailing).toBe(1);
  expect((await other.audit.verifyChain(testPrincipal())).problems).toContainEqual(
    expect.stringMatching(/^The sealed heads name the key .*, which the key file does not have\.$/),
  );
  expect(await world.version()).toBe(version);
});

test("heads that were sealed anew with the key, in the place of others, are noticed by an anchor", async () => {
  const one = world.controller();
  await world.write(one, 3);
  await one.audit.close();
  await one.anchor();
  expect(await world.verify({ anchored: true })).toMatchObject({ problems: [] });
  const { revision, register } = await world.heads.read("matrix");
  await world.heads.write("matrix", revision, { ...register!, heads: [] });
  expect((await world.verify({ anchored: true })).first).toMatchObject({ kind: "heads" });
});

describe("heads that are put back alone", () => {
  test("are noticed by the entries of more than five minutes that have none then", async () => {
    const kv = await world.kv();
    const one = world.controller();
    await world.write(one);
    await one.audit.writeHeads();
    const earlier = await kv.get(REGISTER_KEY);
    for (let minute = 0; minute < 10; minute++) {
      world.clock.advance(AUDIT_HEAD_INTERVAL_MS);
      await world.write(one);
    }
    await one.audit.close();
    await kv.put(REGISTER_KEY, earlier?.value ?? new Uint8Array());
    expect((await world.verify()).first).toMatchObject({ kind: "heads", sequence: 2 });
  });

  test("are noticed, as those that are removed, by a controller that sealed them, and it is on record", async () => {
    const kv = await world.kv();
    const one = world.controller();
    await world.write(one);
    await one.audit.writeHeads();
    const earlier = await kv.get(REGISTER_KEY);
    await world.write(one);
    await one.audit.writeHeads();
    const seen = () => one.audit.verifyChain(testPrincipal());
    expect(await seen()).toMatchObject({ problems: [] });
    await kv.put(REGISTER_KEY, earlier?.value ?? new Uint8Array());
    expect((await seen()).first).toMatchObject({ kind: "heads", text: expect.stringContaining("put back") });
    await kv.delete(REGISTER_KEY);
    expect((await seen()).first).toMatchObject({ kind: "heads", text: expect.stringContaining("removed") });
    await one.audit.close();
    await world.write(one);
    await one.audit.writeHeads();
    expect(await world.verify()).toMatchObject({ first: { kind: "heads" }, problems: { length: 1 } });
  });
});

test("heads that were removed are noticed after others were sealed in their place", async () => {
  const one = world.controller();
  await world.write(one, 5);
  await one.audit.close();
  await (await world.kv()).delete(REGISTER_KEY);
  world.clock.advance(2 * AUDIT_CLOCK_SLACK_MS);
  const [entry] = records().splice(4, 1);
  records().splice(0, Infinity);
  await world.write(world.controller());
  records().unshift(entry!);
  const { problems } = await world.verify();
  expect(problems).toContainEqual(expect.stringContaining("the sealed heads of that time were removed"));
  records().shift();
  await (await world.kv()).delete(REGISTER_KEY);
  await world.write(world.controller());
  expect((await world.verify()).problems, "by the controller that seals anew").toContain(
    "The sealed heads were removed.",
  );
});
