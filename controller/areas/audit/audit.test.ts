import { createHash } from "node:crypto";
import { pino } from "pino";
import { describe, expect, test } from "vitest";
import { AUDIT_PATIENCE_MS, AUDIT_PROBE_MS, STORE_CALL_DEADLINE_MS } from "../../../common/limits.ts";
import { openTestEngine } from "../../../test/helpers/engine.ts";
import { MemoryTrail } from "../../../test/helpers/http-app.ts";
import { realClock } from "../../../test/helpers/clock.ts";
import { TEST_SECRETS, TestClock, testPrincipal, testRuntime } from "../../../test/helpers/runtime.ts";
import { secretBox } from "../../secrets/index.ts";
import { ObjectService } from "../objects/index.ts";
import { QueryService } from "../query/index.ts";
import { ChainVerifier, hashOf, type AuditRecord } from "./chain.ts";
import { AuditService } from "./service.ts";
import { AUDIT_CLASS, StoredTrail } from "./store.ts";
import type { AuditEntry } from "./types.ts";

function entry(members: Partial<AuditEntry> = {}): AuditEntry {
  return {
    tenant: "matrix",
    user: "u",
    permission: "hosts:write",
    action: "POST /host",
    outcome: "ok",
    code: "ok",
    remote: "r",
    traceparent: "t",
    ...members,
  };
}

function open() {
  const clock = new TestClock();
  const trail = new MemoryTrail();
  const audit = new AuditService({ runtime: testRuntime(clock), trail, keys: TEST_SECRETS });
  return { clock, trail, audit };
}

function problems(records: readonly AuditRecord[]): readonly string[] {
  const verifier = new ChainVerifier(TEST_SECRETS);
  for (const record of records) verifier.add(record);
  return verifier.report().problems;
}

const FIELDS = [
  "run",
  "sequence",
  "timeMs",
  "tenant",
  "user",
  "permission",
  "action",
  "outcome",
  "code",
  "remote",
  "traceparent",
  "previous",
] as const;

/** The same entries by another user, every hash and link made anew. */
function rebuilt(records: readonly AuditRecord[], hashOfBody: (body: AuditRecord) => string): readonly AuditRecord[] {
  let previous = "0".repeat(64);
  return records.map((record) => {
    const body = { ...record, user: "forged", previous };
    previous = hashOfBody(body);
    return { ...body, hash: previous };
  });
}

describe("the chain", () => {
  test("entries written at once are chained in their order and go together", async () => {
    const { trail, audit } = open();
    await Promise.all(Array.from({ length: 100 }, (_, at) => audit.write(entry({ action: String(at) }))));
    expect(trail.records.map(({ action }) => action)).toEqual(Array.from({ length: 100 }, (_, at) => String(at)));
    expect(trail.records.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 100 }, (_, at) => at + 1));
    expect(trail.appends).toBe(1);
    expect(await audit.verifyChain(testPrincipal())).toEqual({ entries: 100, runs: 1, unkeyed: 0, problems: [] });
  });

  test("each tenant has a chain of its own", async () => {
    const { trail, audit } = open();
    await Promise.all([audit.write(entry()), audit.write(entry({ tenant: "second" })), audit.write(entry())]);
    expect(trail.records.map(({ tenant, sequence }) => [tenant, sequence]).sort()).toEqual([
      ["matrix", 1],
      ["matrix", 2],
      ["second", 1],
    ]);
  });

  test("any change, gap, addition or swap is noticed; expiry of the oldest is none", async () => {
    const { trail, audit } = open();
    for (let at = 0; at < 5; at++) await audit.write(entry({ action: String(at) }));
    const good = trail.records;
    const [first, second, third, fourth, fifth] = good as [
      AuditRecord,
      AuditRecord,
      AuditRecord,
      AuditRecord,
      AuditRecord,
    ];
    expect(problems([...good].reverse())).toEqual([]);
    expect(problems([third, fourth, fifth])).toEqual([]);
    for (const member of ["user", "outcome", "remote", "timeMs", "tenant"] as const) {
      expect(problems([first, { ...second, [member]: member === "timeMs" ? 1 : "x" }, third])).toEqual([
        expect.stringContaining("Entry 2 of run"),
      ]);
    }
    expect(problems([first, fourth])).toEqual([expect.stringContaining("Entries 2 to 3")]);
    expect(problems([first, second, second])).toEqual([expect.stringContaining("is there twice")]);
    const forged = { ...second, user: "forged" };
    expect(problems([first, { ...forged, hash: hashOf(forged, TEST_SECRETS) }, third])).toEqual([
      expect.stringContaining("does not follow"),
    ]);
  });

  test("a trail that was rebuilt by who has the store and not the key is noticed", async () => {
    const { trail, audit } = open();
    for (let at = 0; at < 5; at++) await audit.write(entry({ action: String(at) }));
    const strangers = secretBox([Buffer.alloc(32, 9)]);
    expect(problems(rebuilt(trail.records, (body) => hashOf(body, strangers)))[0]).toContain("names the key");
    expect(
      problems(rebuilt(trail.records, (body) => hashOf(body, strangers).replace(strangers.keyId, TEST_SECRETS.keyId))),
    ).toHaveLength(5);
    const plain = rebuilt(trail.records, (body) =>
      createHash("sha256")
        .update(JSON.stringify(FIELDS.map((name) => body[name])))
        .digest("hex"),
    );
    const verifier = new ChainVerifier(TEST_SECRETS);
    for (const record of plain) verifier.add(record);
    expect(verifier.report()).toMatchObject({ entries: 5, unkeyed: 5, problems: [] });
    expect(problems([...plain.slice(0, 2), ...trail.records.slice(2)])).toEqual([
      expect.stringContaining("hash of another kind"),
    ]);
  });

  test("entries hold under the key they were made with after another one took its place", async () => {
    const { trail, audit } = open();
    await audit.write(entry());
    const rotated = secretBox([Buffer.alloc(32, 8), Buffer.alloc(32, 7)]);
    expect(
      await new AuditService({ runtime: testRuntime(), trail, keys: rotated }).verifyChain(testPrincipal()),
    ).toMatchObject({ entries: 1, problems: [] });
  });

  test("a start looks at the newest entries and says loudly what does not hold", async () => {
    const { trail, audit, clock } = open();
    const said: unknown[] = [];
    const runtime = {
      ...testRuntime(clock),
      log: pino({ level: "error" }, { write: (line: string) => void said.push(JSON.parse(line)) }),
    };
    for (let at = 0; at < 5; at++) await audit.write(entry({ action: String(at) }));
    const started = new AuditService({ runtime, trail, keys: TEST_SECRETS });
    await started.verifyNewest("matrix");
    expect(said).toEqual([]);
    trail.records.splice(2, 1);
    await started.verifyNewest("matrix");
    expect(said).toEqual([
      expect.objectContaining({ tenant: "matrix", problems: [expect.stringContaining("Entries 3 to 3")] }),
    ]);
  });

  test("a clock that jumps back does not disturb the order", async () => {
    const { trail, audit, clock } = open();
    clock.advance(1_000);
    await audit.write(entry());
    clock.advance(-500);
    await audit.write(entry());
    expect(trail.records[1]?.timeMs).toBe(trail.records[0]?.timeMs);
  });
});

describe("while it cannot be written", () => {
  test("writers are told, changes are refused, a new run begins after it", async () => {
    const { trail, audit, clock } = open();
    await audit.ready("matrix");
    trail.broken = true;
    await expect(audit.write(entry())).rejects.toMatchObject({ code: "unavailable" });
    await expect(audit.ready("matrix")).rejects.toMatchObject({ code: "unavailable" });
    const tries = trail.appends;
    await expect(audit.ready("matrix")).rejects.toMatchObject({ code: "unavailable" });
    expect(trail.appends).toBe(tries);
    trail.broken = false;
    clock.advance(AUDIT_PROBE_MS);
    await audit.ready("matrix");
    await audit.write(entry());
    expect(trail.records.map(({ action }) => action)).toEqual([
      "audit opened",
      "audit resumed; 1 entries may be missing",
      "POST /host",
    ]);
    expect(await audit.verifyChain(testPrincipal())).toEqual({ entries: 3, runs: 2, unkeyed: 0, problems: [] });
  });

  test("nobody waits long for a trail that does not answer, and what waits in it is kept when it answers", async () => {
    const { trail, audit, clock } = open();
    await audit.ready("matrix");
    const append = trail.append.bind(trail);
    let answer = (): void => undefined;
    const away = new Promise<void>((resolve) => (answer = resolve));
    let asked = 0;
    trail.append = async (tenant, records) => {
      asked++;
      await away;
      return append(tenant, records);
    };
    const hanging = audit.write(entry({ action: "POST /a" }));
    await expect.poll(() => asked).toBe(1);
    await audit.ready("matrix");
    clock.advance(STORE_CALL_DEADLINE_MS + 1);
    await expect(audit.ready("matrix")).rejects.toMatchObject({ code: "unavailable" });
    const denied = audit.write(entry({ action: "POST /b", outcome: "denied" }));
    clock.advance(AUDIT_PATIENCE_MS);
    await expect(denied).rejects.toMatchObject({ code: "unavailable" });
    answer();
    await hanging;
    await audit.ready("matrix");
    await expect.poll(() => trail.records.map(({ action }) => action)).toEqual(["audit opened", "POST /a", "POST /b"]);
    expect(await audit.verifyChain(testPrincipal())).toMatchObject({ runs: 1, problems: [] });
  });

  test("an unknown outcome is tried again and leaves one row", async () => {
    const { trail, audit } = open();
    let failures = 1;
    const append = trail.append.bind(trail);
    trail.append = async (tenant, records) => {
      if (failures-- > 0) throw new Error("lost");
      return append(tenant, records);
    };
    await audit.write(entry());
    expect(trail.records).toHaveLength(1);
  });
});

test("entries of a tenant are objects that anyone may query and nobody may change", async () => {
  await using engine = await openTestEngine();
  const objects = new ObjectService({ stores: engine, runtime: testRuntime(realClock) });
  objects.registerSystemClass(AUDIT_CLASS);
  const trail = new StoredTrail({
    clock: realClock,
    stores: engine,
    objects,
    ospaceOf: (tenant) => Promise.resolve(`/${tenant}`),
  });
  const audit = new AuditService({ runtime: testRuntime(realClock), trail, keys: TEST_SECRETS });
  await audit.ready("matrix");
  await Promise.all(Array.from({ length: 1_200 }, (_, at) => audit.write(entry({ action: String(at) }))));
  await audit.write(entry({ tenant: "second" }));
  expect(await audit.verifyChain(testPrincipal())).toEqual({ entries: 1_201, runs: 1, unkeyed: 0, problems: [] });
  expect(await audit.verifyChain(testPrincipal("administrator", "second"))).toEqual({
    entries: 1,
    runs: 1,
    unkeyed: 0,
    problems: [],
  });
  const read: number[] = [];
  for await (const records of trail.read("matrix")) read.push(...records.map(({ sequence }) => sequence));
  expect(read, "the newest first, also of one millisecond").toEqual(
    Array.from({ length: 1_201 }, (_, at) => 1_201 - at),
  );
  const query = new QueryService({ objects, runtime: testRuntime(realClock) });
  const found = await query.rows(
    testPrincipal("viewer"),
    "select user, action, outcome from /matrix/system/audit where action='audit opened'",
  );
  expect(found).toEqual([expect.objectContaining({ user: "system", action: "audit opened", outcome: "ok" })]);
  for (const change of [
    "insert into /matrix/system/audit user='forged'",
    "delete from /matrix/system/audit",
    "update /matrix/system/audit set user='forged'",
  ]) {
    await expect(query.rows(testPrincipal(), change)).rejects.toThrow();
  }
  expect(await audit.verifyChain(testPrincipal())).toMatchObject({ entries: 1_201, problems: [] });
  await objects.close();
});

test("what belongs to no tenant lies in the system store, page after page", async () => {
  await using engine = await openTestEngine();
  const clock = new TestClock(Date.now());
  const nobody = (): never => {
    throw new Error("no tenant is asked");
  };
  const trail = new StoredTrail({ clock, stores: engine, objects: undefined as never, ospaceOf: nobody });
  const audit = new AuditService({ runtime: testRuntime(clock), trail, keys: TEST_SECRETS });
  await Promise.all(Array.from({ length: 1_500 }, (_, at) => audit.write(entry({ tenant: "", action: String(at) }))));
  expect(await audit.verifyChain(testPrincipal("administrator", ""))).toEqual({
    entries: 1_500,
    runs: 1,
    unkeyed: 0,
    problems: [],
  });
});
