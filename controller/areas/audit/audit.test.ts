import { createHash } from "node:crypto";
import { pino } from "pino";
import { describe, expect, test } from "vitest";
import { anchorLine, anchorOf } from "../../../common/audit-anchor.ts";
import {
  AUDIT_ANCHOR_INTERVAL_MS,
  AUDIT_KEEP_SECONDS,
  AUDIT_PATIENCE_MS,
  AUDIT_PROBE_MS,
  AUDIT_WAITING_MAX_ENTRIES,
  STORE_CALL_DEADLINE_MS,
} from "../../../common/limits.ts";
import { openTestEngine } from "../../../test/helpers/engines/engine.ts";
import { MemoryTrail } from "../../../test/helpers/areas/http-app.ts";
import { ForgetfulFiles } from "../../../test/helpers/engines/forgetful-files.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { TEST_SECRETS, TestClock, testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { CountedPauses } from "../../../test/security/pauses.ts";
import { secretBox } from "../../secrets/index.ts";
import { ObjectService } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import { QueryService } from "../query/index.ts";
import { AnchorFile } from "./anchor-file.ts";
import { Anchoring } from "./anchoring.ts";
import { hashOf, type AuditRecord } from "./chain.ts";
import { AuditService } from "./service.ts";
import { AUDIT_CLASS, StoredTrail } from "./store.ts";
import type { AuditEntry } from "./types.ts";
import { ChainVerifier } from "./verify.ts";

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

/** Records in the order of their creation; a trail returns the newest first. */
function problems(records: readonly AuditRecord[]): readonly string[] {
  return verified(records).problems;
}

function verified(records: readonly AuditRecord[]) {
  const verifier = new ChainVerifier({ keys: TEST_SECRETS });
  for (const record of [...records].reverse()) verifier.add(record);
  return verifier.report();
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

/** The same entries with another user; all hashes and links are computed again. */
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
    expect(await audit.verifyChain(testPrincipal())).toMatchObject({
      entries: 100,
      runs: 1,
      unkeyed: 0,
      anchors: 0,
      problems: [],
    });
  });

  test("so many entries wait for the store and no more, and there is room again when they are written", async () => {
    const { trail, audit } = open();
    const waiting = Array.from({ length: AUDIT_WAITING_MAX_ENTRIES }, () => audit.write(entry()));
    await expect(audit.write(entry())).rejects.toMatchObject({ code: "unavailable" });
    await Promise.all(waiting);
    await audit.write(entry());
    expect(trail.records).toHaveLength(AUDIT_WAITING_MAX_ENTRIES + 1);
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
    expect(verified(plain)).toMatchObject({ entries: 5, unkeyed: 5, problems: [] });
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

describe("anchors outside the store", () => {
  const PATH = "/outside/anchors";

  function anchored(disk = new ForgetfulFiles(1)) {
    const clock = new TestClock();
    const said: unknown[] = [];
    const log = pino({ level: "error" }, { write: (line: string) => void said.push(JSON.parse(line)) });
    const runtime = { ...testRuntime(clock), log };
    const anchoring = new Anchoring({ runtime, file: new AnchorFile(PATH, disk.boot()) });
    const trail = new MemoryTrail();
    let bornMs = 0;
    const audit = new AuditService({
      runtime,
      trail,
      keys: TEST_SECRETS,
      anchoring,
      bornMs: () => Promise.resolve(bornMs),
    });
    const bornNow = (): void => void (bornMs = clock.nowMs());
    const lines = (): readonly string[] => (disk.contents().get(PATH)?.toString() ?? "").split("\n").slice(0, -1);
    return { clock, disk, said, anchoring, trail, audit, lines, bornNow };
  }

  test("the newest digest of each run goes there every minute, and at the end; nothing when there is nothing new", async () => {
    const { clock, anchoring, audit, lines, trail } = anchored();
    anchoring.start();
    await Promise.all([audit.write(entry()), audit.write(entry()), audit.write(entry({ tenant: "second" }))]);
    clock.advance(AUDIT_ANCHOR_INTERVAL_MS);
    await expect.poll(lines).toHaveLength(2);
    expect(lines().map((line) => anchorOf(line))).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ tenant: "matrix", sequence: 2, hash: trail.records[1]?.hash }),
      ]),
    );
    await expect.poll(() => clock.waiting).toBe(1);
    clock.advance(AUDIT_ANCHOR_INTERVAL_MS);
    await audit.write(entry());
    await anchoring.close();
    expect(lines()).toHaveLength(3);
  });

  test("a full disk is told in the log, in the figures and by the verification, and what it lacks is written later", async () => {
    const { anchoring, audit, said, disk, lines } = anchored();
    await audit.write(entry());
    await anchoring.write();
    disk.faults.capacityBytes = Buffer.byteLength(lines().join("\n")) + 50;
    await audit.write(entry());
    await anchoring.write();
    expect(said).toEqual([expect.objectContaining({ msg: expect.stringContaining("NOT ANCHORED"), file: PATH })]);
    expect(anchoring.waiting).toBe(1);
    expect(await audit.verifyChain(testPrincipal())).toMatchObject({
      problems: [],
      anchorFault: expect.stringContaining("ENOSPC"),
    });
    delete disk.faults.capacityBytes;
    await anchoring.close();
    expect(anchoring).toMatchObject({ waiting: 0, failure: undefined });
    expect(anchorOf(lines().at(-1) ?? "")).toMatchObject({ sequence: 2 });
    expect((await audit.verifyChain(testPrincipal())).anchorFault).toContain("1 line of anchors cannot be read");
  });

  test("no power cut takes what was written there, from the first line on", async () => {
    for (let seed = 1; seed <= 8; seed++) {
      const { anchoring, audit, disk, lines } = anchored(new ForgetfulFiles(seed));
      await audit.write(entry());
      await anchoring.write();
      disk.powerCut();
      expect(lines(), `seed ${seed}`).toHaveLength(1);
    }
  });

  test("anchors that another controller kept are brought along", async () => {
    const { audit, trail } = anchored();
    await audit.write(entry());
    const [record] = trail.records as [AuditRecord];
    const cutOff = expect.stringContaining("not noticed when the newest entries are cut off");
    expect((await audit.verifyChain(testPrincipal())).notes, "without one").toContainEqual(cutOff);
    const brought = anchorLine({ ...record, sequence: 2, hash: "x" });
    expect(await audit.verifyChain(testPrincipal(), { anchors: [brought] })).toMatchObject({
      anchors: 1,
      first: { kind: "truncated", sequence: 2 },
    });
    expect(await audit.verifyChain(testPrincipal(), { anchors: [anchorLine(record)] })).toMatchObject({
      anchors: 1,
      problems: [],
      notes: expect.not.arrayContaining([cutOff]),
    });
  });

  test("others have the thread while many are read and compared, and many entries", async () => {
    const { audit, trail } = anchored();
    const many = 20;
    await Promise.all(Array.from({ length: many }, () => audit.write(entry())));
    const [record] = trail.records as [AuditRecord];
    const anchors = Array.from({ length: many }, (_, at) => anchorLine({ ...record, run: `run ${at}` }));
    using pauses = new CountedPauses();
    expect(await audit.verifyChain(testPrincipal(), { anchors })).toMatchObject({ anchors: many });
    // One pause for each line, entry and run.
    expect(pauses.count).toBeGreaterThanOrEqual(3 * many);
  });

  test("those of entries that expired, and of an earlier tenant of the same name, are left out", async () => {
    const { audit, trail, clock, anchoring, bornNow } = anchored();
    await audit.write(entry());
    await anchoring.write();
    trail.records.splice(0);
    expect((await audit.verifyChain(testPrincipal())).first).toMatchObject({ kind: "truncated", sequence: 1 });
    clock.advance(1);
    bornNow();
    expect(await audit.verifyChain(testPrincipal())).toMatchObject({ anchors: 0, problems: [] });
    const old = anchored();
    await old.audit.write(entry());
    await old.anchoring.write();
    old.trail.records.splice(0);
    old.clock.advance(AUDIT_KEEP_SECONDS * 1_000);
    expect(await old.audit.verifyChain(testPrincipal())).toMatchObject({ anchors: 0, problems: [] });
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
    expect(await audit.verifyChain(testPrincipal())).toMatchObject({
      entries: 3,
      runs: 2,
      unkeyed: 0,
      anchors: 0,
      problems: [],
    });
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
  expect(await audit.verifyChain(testPrincipal())).toMatchObject({
    entries: 1_201,
    runs: 1,
    unkeyed: 0,
    anchors: 0,
    problems: [],
  });
  expect(await audit.verifyChain(testPrincipal("administrator", "second"))).toMatchObject({
    entries: 1,
    runs: 1,
    unkeyed: 0,
    anchors: 0,
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

test("a period of the trail is exported from its first millisecond to before its last, on whatever pages", async () => {
  const { audit, trail, clock } = open();
  const timesMs: number[] = [];
  for (let at = 0; at < 3; at++) {
    timesMs.push(clock.nowMs());
    await audit.write(entry());
    await audit.write(entry());
    clock.advance(1);
  }
  trail.pageEntries = 1;
  const [, fromMs = 0, toMs = 0] = timesMs;
  const found: number[] = [];
  for await (const records of audit.export(testPrincipal(), { fromMs, toMs }))
    found.push(...records.map(({ timeMs }) => timeMs));
  expect(found).toEqual([fromMs, fromMs]);
});

test("the trail is exported whole, or not to who may not see all of it", async () => {
  const { audit } = open();
  await audit.write(entry());
  const exported = async (data: Principal["data"]): Promise<number> => {
    let entries = 0;
    for await (const records of audit.export({ ...testPrincipal(), data }, {})) entries += records.length;
    return entries;
  };
  const whole = { class: "/", access: "read" } as const;
  expect(await exported([whole])).toBe(1);
  for (const less of [
    { class: "/matrix/system/audit", access: "read", where: "user = 'me'" },
    { class: "/matrix/system/audit", access: "read", hidden: ["remote"] },
    { class: "/matrix/system", access: "none" },
  ] as const)
    await expect(exported([whole, less])).rejects.toMatchObject({ code: "denied" });
  await expect(exported([])).rejects.toMatchObject({ code: "denied" });
  // One group sees all rows, another one all columns; together they still miss cells.
  const rows = { ...whole, hidden: ["remote"], group: "rows" };
  const columns = { ...whole, where: "user = 'me'", group: "columns" };
  await expect(exported([rows, columns])).rejects.toMatchObject({ code: "denied" });
  expect(await exported([rows, columns, { ...whole, group: "whole" }])).toBe(1);
});

test("no text that a caller gives keeps an entry, or those of others, from being written", async () => {
  await using engine = await openTestEngine();
  const objects = new ObjectService({ stores: engine, runtime: testRuntime(realClock) });
  objects.registerSystemClass(AUDIT_CLASS);
  const ospaceOf = (tenant: string) => Promise.resolve(`/${tenant}`);
  const trail = new StoredTrail({ clock: realClock, stores: engine, objects, ospaceOf });
  const audit = new AuditService({ runtime: testRuntime(realClock), trail, keys: TEST_SECRETS });
  const texts = ["a\ud800b😀", "\udc00", "a\u0000b", "x".repeat(3_000_000)];
  const entries = texts.map((text) => entry({ user: text, action: `MQL createEdgeType ${text}`, object: text }));
  await Promise.all([entry({ action: "of another" }), ...entries].map((each) => audit.write(each)));
  const { entries: kept, problems: found } = await audit.verifyChain(testPrincipal());
  expect({ kept, found }).toEqual({ kept: 5, found: [] });
  const query = new QueryService({ objects, runtime: testRuntime(realClock) });
  const told = await query.rows(testPrincipal(), "select action from /matrix/system/audit where object like 'a%'");
  expect(told.map(({ action }) => action).sort()).toEqual([
    "MQL createEdgeType a\u0000b",
    "MQL createEdgeType a\\ud800b😀",
  ]);
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
  expect(await audit.verifyChain(testPrincipal("administrator", ""))).toMatchObject({
    entries: 1_500,
    runs: 1,
    unkeyed: 0,
    anchors: 0,
    problems: [],
  });
});
