import { describe, expect, it } from "vitest";
import { InFlight } from "./in-flight.ts";

function gate(): { readonly opened: Promise<void>; open(): void; fail(error: Error): void } {
  let open = (): void => undefined;
  let fail = (_error: Error): void => undefined;
  const opened = new Promise<void>((resolve, reject) => {
    open = resolve;
    fail = reject;
  });
  return { opened, open, fail };
}

describe("work in flight", () => {
  it("goes on side by side up to its limit", async () => {
    const gates = [gate(), gate(), gate()];
    const begun: number[] = [];
    const work = new InFlight(2);
    const all = (async () => {
      for (const [at, { opened }] of gates.entries()) await work.begin(() => (begun.push(at), opened));
      await work.end();
    })();
    await Promise.resolve();
    await Promise.resolve();
    expect(begun).toEqual([0, 1]);
    gates[1]?.open();
    await expect.poll(() => begun).toEqual([0, 1, 2]);
    gates[0]?.open();
    gates[2]?.open();
    await all;
  });

  it("ends with the first failure, when all that was begun is over", async () => {
    const [slow, bad] = [gate(), gate()];
    let over = false;
    const work = new InFlight(2);
    await work.begin(() => slow.opened.then(() => void (over = true)));
    await work.begin(() => bad.opened);
    bad.fail(new Error("no"));
    await expect(work.begin(() => Promise.reject(new Error("never begun")))).rejects.toThrow("no");
    slow.open();
    await expect(work.end()).rejects.toThrow("no");
    expect(over).toBe(true);
  });
});
