import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createLog } from "../../agent/log.ts";
import { anchorLine } from "../../common/audit-anchor.ts";
import { AuditService } from "../../controller/areas/audit/index.ts";
import { MemoryTrail } from "../helpers/http/http-app.ts";
import { TestClock, TEST_SECRETS, testRuntime } from "../helpers/time/runtime.ts";

/** A zone 14 hours ahead of UTC: a time in the wrong zone is obvious. */
const ZONE = "Pacific/Kiritimati";
const AT = "2026-03-01T00:30:00.000Z";

const before = process.env["TZ"];
beforeAll(() => {
  process.env["TZ"] = ZONE;
});
afterAll(() => {
  if (before === undefined) delete process.env["TZ"];
  else process.env["TZ"] = before;
});

test("times of the audit trail, its anchors and the logs are UTC by the clock, whatever the zone of the machine", async () => {
  expect(new Date(AT).getHours(), "the zone counts").toBe(14);
  const timeMs = Date.parse(AT);
  const clock = new TestClock(timeMs);
  const trail = new MemoryTrail();
  const audit = new AuditService({ runtime: testRuntime(clock), trail, keys: TEST_SECRETS });
  const entry = {
    tenant: "matrix",
    user: "ann",
    permission: "hosts:write",
    action: "POST /host",
    outcome: "ok",
  } as const;
  await audit.write({ ...entry, code: "ok", remote: "test", traceparent: "" });
  expect(trail.records.map((record) => record.timeMs)).toEqual([timeMs]);
  const anchor = anchorLine({ timeMs, tenant: "matrix", run: "r", sequence: 1, hash: "h" });
  expect(JSON.parse(anchor)).toMatchObject({ time: AT });
  const lines: string[] = [];
  createLog(clock, (line) => void lines.push(line))("info", "of the agent");
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({ time: AT });
  const from = Date.now();
  pino({}, { write: (line: string) => void lines.push(line) }).info("of the controller");
  const { time } = JSON.parse(lines[1] ?? "") as { readonly time: number };
  expect(time).toBeGreaterThanOrEqual(from);
  expect(time).toBeLessThanOrEqual(Date.now());
});
