import { createHash } from "node:crypto";
import { pino } from "pino";
import { describe, expect, test } from "vitest";
import {
  AUDIT_PATIENCE_MS,
  AUDIT_PROBE_MS,
  AUDIT_WAITING_MAX_ENTRIES,
  STORE_CALL_DEADLINE_MS,
} from "../../../common/limits.ts";
import { TEST_SECRETS, testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { secretBox } from "../../secrets/index.ts";
import type { Principal } from "../permissions/index.ts";
import { hashOf, type AuditRecord } from "./chain.ts";
import { AuditService } from "./service.ts";
import { ChainVerifier } from "./verify.ts";
import { entry, openAudit } from "../../../test/helpers/areas/audit-entries.ts";

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
    const { trail, audit } = openAudit();
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
    const { trail, audit } = openAudit();
    const waiting = Array.from({ length: AUDIT_WAITING_MAX_ENTRIES }, () => audit.write(entry()));
    await expect(audit.write(entry())).rejects.toMatchObject({ code: "unavailable" });
    await Promise.all(waiting);
    await audit.write(entry());
    expect(trail.records).toHaveLength(AUDIT_WAITING_MAX_ENTRIES + 1);
  });

  test("each tenant has a chain of its own", async () => {
    const { trail, audit } = openAudit();
    await Promise.all([audit.write(entry()), audit.write(entry({ tenant: "second" })), audit.write(entry())]);
    expect(trail.records.map(({ tenant, sequence }) => [tenant, sequence]).sort()).toEqual([
      ["matrix", 1],
      ["matrix", 2],
      ["second", 1],
    ]);
  });

  test("any change, gap, addition or swap is noticed; expiry of the oldest is none", async () => {
    const { trail, audit } = openAudit();
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
    const { trail, audit } = openAudit();
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
    const { trail, audit } = openAudit();
    await audit.write(entry());
    const rotated = secretBox([Buffer.alloc(32, 8), Buffer.alloc(32, 7)]);
    expect(
      await new AuditService({ runtime: testRuntime(), trail, keys: rotated }).verifyChain(testPrincipal()),
    ).toMatchObject({ entries: 1, problems: [] });
  });

  test("a start looks at the newest entries and says loudly what does not hold", async () => {
    const { trail, audit, clock } = openAudit();
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
    const { trail, audit, clock } = openAudit();
    clock.advance(1_000);
    await audit.write(entry());
    clock.advance(-500);
    await audit.write(entry());
    expect(trail.records[1]?.timeMs).toBe(trail.records[0]?.timeMs);
  });
});

describe("while it cannot be written", () => {
  test("writers are told, changes are refused, a new run begins after it", async () => {
    const { trail, audit, clock } = openAudit();
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
    const { trail, audit, clock } = openAudit();
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
    const { trail, audit } = openAudit();
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

test("a period of the trail is exported from its first millisecond to before its last, on whatever pages", async () => {
  const { audit, trail, clock } = openAudit();
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
  const { audit } = openAudit();
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
