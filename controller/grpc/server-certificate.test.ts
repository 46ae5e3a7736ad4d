import { describe, expect, it } from "vitest";
import { TestClock, testRuntime } from "../../test/helpers/time/runtime.ts";
import { ServerCertificate } from "./server-certificate.ts";

const DAY_MS = 86_400_000;

describe("the agent port's certificate", () => {
  it("is made anew when two thirds of its life are over, also after a failure", async () => {
    const clock = new TestClock();
    let issued = 0;
    let broken = false;
    const issue = async () => {
      if (broken) throw new Error("the store is away");
      issued += 1;
      return { certificate: `c${issued}`, key: `k${issued}`, untilMs: clock.nowMs() + 30 * DAY_MS };
    };
    const certificate = await ServerCertificate.open({ issue, authorities: "ca", runtime: testRuntime(clock) });
    const seen: string[] = [];
    certificate.addIdentityCertificateListener((update) => seen.push(update?.certificate.toString() ?? ""));
    await settled();
    expect(seen).toEqual(["c1"]);
    clock.advance(19 * DAY_MS);
    await settled();
    expect(issued).toBe(1);
    broken = true;
    clock.advance(DAY_MS + 1);
    await settled();
    expect(issued).toBe(1);
    broken = false;
    clock.advance(61_000);
    await settled();
    expect(seen).toEqual(["c1", "c2"]);
    certificate.close();
    expect(clock.waiting).toBe(0);
  });
});

/** Waits until everything that was already due has run. */
async function settled(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}
