import { randomBytes } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import { realClock } from "../../../test/helpers/time/clock.ts";
import { openTestEngine, type TestEngine } from "../../../test/helpers/engines/engine.ts";
import { eventually } from "../../../test/helpers/programs/programs.ts";
import { testRuntime } from "../../../test/helpers/time/runtime.ts";
import { wrappedKv } from "../../../test/helpers/engines/wrapped-kv.ts";
import type { KvLease, KvStore } from "../../store/kv.ts";
import { Membership } from "./membership.ts";

const DEADLINE_MS = 30_000;

describe("controllers", () => {
  let engine: TestEngine;
  const open: Membership[] = [];
  beforeEach(async () => {
    engine = await openTestEngine();
  });
  afterEach(async () => {
    for (const membership of open.splice(0)) await membership.close();
    await engine[Symbol.asyncDispose]();
  });

  async function join(wrap: (kv: KvStore) => KvStore = (kv) => kv): Promise<Membership> {
    const controllerId = randomBytes(6).toString("hex");
    const membership = await Membership.open({
      kv: wrap((await engine.system()).kv),
      runtime: testRuntime(realClock),
      controllerId,
      version: "1",
    });
    open.push(membership);
    return membership;
  }

  test("know of each other as they come, say where they are, and go", async () => {
    const [a, b] = [await join(), await join()];
    expect(b.has(a.own) && b.has(b.own)).toBe(true);
    await eventually("a knows b", DEADLINE_MS, () => a.has(b.own) || undefined);
    expect(a.others()).toEqual([]);
    let told = 0;
    a.onChange(() => told++);
    await b.announce({ addresses: ["localhost:1"], url: "http://localhost:2" });
    await eventually("a knows where b is", DEADLINE_MS, () => a.others()[0]);
    expect(a.others()).toMatchObject([
      { id: b.own, addresses: ["localhost:1"], url: "http://localhost:2", version: "1" },
    ]);
    await b.close();
    await eventually("a knows that b went", DEADLINE_MS, () => !a.has(b.own) || undefined);
    expect(told).toBeGreaterThanOrEqual(2);
    expect(b.has("somebody-else")).toBe(false);
  });

  test("come and say where they are though the store does not tell how their writes ended", async () => {
    const [a, silent] = [await join(), new Set(["lease", "put"])];
    const once = (what: string): void => {
      if (silent.delete(what)) throw new AppError("unknown_outcome", "done, not told");
    };
    const b = await join((kv) =>
      wrappedKv(kv, {
        lease: async (ttlMs) => {
          const lease = await kv.lease(ttlMs);
          once("lease");
          return lease;
        },
        put: async (key, value, options) => {
          const written = await kv.put(key, value, options);
          once("put");
          return written;
        },
      }),
    );
    silent.add("put");
    await b.announce({ addresses: ["localhost:1"], url: "" });
    expect(silent.size).toBe(0);
    await eventually("a knows where b is", DEADLINE_MS, () => a.others()[0]);
  });

  test("show themselves again when their lease was lost", async () => {
    const granted: { readonly lease: KvLease; readonly lose: () => void }[] = [];
    const a = await join();
    const b = await join((kv) =>
      wrappedKv(kv, {
        lease: async (ttlMs) => {
          const lease = await kv.lease(ttlMs);
          const stop = new AbortController();
          granted.push({ lease, lose: () => stop.abort() });
          return { id: lease.id, lost: stop.signal, held: () => !stop.signal.aborted, revoke: () => lease.revoke() };
        },
      }),
    );
    await b.announce({ addresses: ["localhost:1"], url: "" });
    await eventually("a knows b", DEADLINE_MS, () => a.others()[0]);
    await granted[0]?.lease.revoke();
    await eventually("a knows that b is gone", DEADLINE_MS, () => !a.has(b.own) || undefined);
    granted[0]?.lose();
    expect(await eventually("b is back with its addresses", DEADLINE_MS, () => a.others()[0])).toMatchObject({
      id: b.own,
      addresses: ["localhost:1"],
    });
    expect(granted).toHaveLength(2);
  });
});
