import { describe, expect, test } from "vitest";
import { HTTP_CALL_DEADLINE_MS } from "../../../common/limits.ts";
import { openTestHttp } from "../../../test/helpers/http/http-app.ts";
import { testPrincipal, TestClock, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { things } from "../../../test/helpers/http/http-things.ts";

describe("bounds", () => {
  test("a call that hangs ends by its deadline and keeps its place; what does not fit is turned away", async () => {
    const clock = new TestClock();
    await using http = await openTestHttp({
      endpoints: things,
      runtime: testRuntime(clock),
      settings: { callsInFlightMax: 1, callsWaitingMax: 1 },
    });
    const [admin, other] = [await http.signIn("admin"), await http.signIn("admin", "second")];
    const hanging = http.call(admin, { url: "/hang" });
    await expect
      .poll(async () => (await http.app.inject({ url: "/metrics" })).body)
      .toContain(`odp_http_calls_in_flight{tenant="matrix"} 1`);
    const waiting = http.call(admin, { url: "/thing/a" });
    await expect.poll(async () => (await http.call(admin, { url: "/thing/b" })).code).toBe("limited");
    expect(await http.call(other, { url: "/thing/a" })).toMatchObject({ status: "ok" });
    clock.advance(HTTP_CALL_DEADLINE_MS);
    expect(await hanging).toMatchObject({ status: "error", code: "deadline" });
    expect(await waiting).toMatchObject({ status: "error", code: "deadline" });
  });

  test("while the audit trail cannot be written no change is made, but all can be read", async () => {
    const clock = new TestClock();
    await using http = await openTestHttp({ endpoints: things, runtime: testRuntime(clock) });
    const admin = await http.signIn("admin");
    http.trail.broken = true;
    const lost = await http.call(admin, { method: "POST", url: "/thing", payload: { name: "a" } });
    expect(lost).toMatchObject({ status: "ok" });
    const refused = await http.call(admin, { method: "POST", url: "/thing", payload: { name: "a" } });
    expect(refused).toMatchObject({
      status: "error",
      code: "unavailable",
      message: expect.stringMatching(/audit trail/),
    });
    expect(await http.call(admin, { url: "/thing/a" })).toMatchObject({ status: "ok" });
    http.trail.broken = false;
    clock.advance(10_000);
    expect(await http.call(admin, { method: "POST", url: "/thing", payload: { name: "a" } })).toMatchObject({
      status: "ok",
    });
    expect(http.trail.records.map(({ action }) => action)).toContain("audit resumed; 1 entries may be missing");
    expect(await http.audit.verifyChain(testPrincipal())).toMatchObject({ problems: [], runs: 2 });
  });
});
