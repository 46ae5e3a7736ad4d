import { pino } from "pino";
import { describe, expect, test } from "vitest";
import { anchorLine, anchorOf } from "../../../common/audit-anchor.ts";
import { AUDIT_ANCHOR_INTERVAL_MS, AUDIT_KEEP_SECONDS } from "../../../common/limits.ts";
import { MemoryTrail } from "../../../test/helpers/http/http-app.ts";
import { ForgetfulFiles } from "../../../test/helpers/engines/forgetful-files.ts";
import { TEST_SECRETS, TestClock, testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { CountedPauses } from "../../../test/security/pauses.ts";
import { AnchorFile } from "./anchor-file.ts";
import { Anchoring } from "./anchoring.ts";
import type { AuditRecord } from "./chain.ts";
import { AuditService } from "./service.ts";
import { entry } from "../../../test/helpers/areas/audit-entries.ts";

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
