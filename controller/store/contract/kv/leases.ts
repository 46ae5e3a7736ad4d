import { expect, test } from "vitest";
import type { KvStore } from "../../kv.ts";
import { again, bytes, type ContractSubject, passTime, put, text, uniqueName } from "../harness.ts";
import { collect, listAll, tell } from "./reading.ts";

const LEASE_MS = 5_000;
/** A short lease, for tests in which real time must pass. */
const KEPT_LEASE_MS = 2_000;

/** Keys that are bound to a lease. */
export function leasesContract(subject: () => ContractSubject): void {
  const kv = (): KvStore => subject().store.kv;

  test("what is bound to a lease goes with it, and watchers are told", async () => {
    const prefix = uniqueName("lease") + "/";
    const lease = await again(() => kv().lease(LEASE_MS));
    await put(kv(), `${prefix}bound`, bytes("1"), { lease: lease.id });
    await put(kv(), `${prefix}free`, bytes("2"));
    expect((await again(() => kv().get(`${prefix}bound`)))!.lease).toBe(lease.id);
    const { revision } = await again(() => kv().list(prefix));
    expect(lease.lost.aborted).toBe(false);
    expect(lease.held()).toBe(true);
    await again(() => lease.revoke());
    expect(lease.lost.aborted).toBe(true);
    expect(lease.held()).toBe(false);
    expect((await listAll(kv(), prefix, 10)).map((entry) => entry.key)).toEqual([`${prefix}free`]);
    const events = await collect(kv(), prefix, { since: revision, until: (all) => all.length > 0 });
    expect(events.map(tell)).toEqual([`${prefix}bound gone`]);
  });

  test("written again without a lease a key stays when the lease ends", async () => {
    const key = uniqueName("unbound");
    const lease = await again(() => kv().lease(LEASE_MS));
    await put(kv(), key, bytes("bound"), { lease: lease.id });
    await put(kv(), key, bytes("free"));
    await again(() => lease.revoke());
    expect(text((await again(() => kv().get(key)))!.value)).toBe("free");
  });

  test("a lease keeps itself alive", async () => {
    const key = uniqueName("alive");
    const lease = await again(() => kv().lease(KEPT_LEASE_MS));
    await put(kv(), key, bytes("here"), { lease: lease.id });
    const overMs = subject().clock.nowMs() + 3 * KEPT_LEASE_MS;
    await passTime(subject(), 3 * KEPT_LEASE_MS, () => Promise.resolve(subject().clock.nowMs() > overMs));
    expect(lease.lost.aborted).toBe(false);
    expect(await again(() => kv().get(key))).toBeDefined();
    await again(() => lease.revoke());
  });

  test("nothing is bound to a lease that has ended", async () => {
    const lease = await again(() => kv().lease(LEASE_MS));
    await again(() => lease.revoke());
    const key = uniqueName("ended");
    await expect(again(() => kv().put(key, bytes("x"), { lease: lease.id }))).rejects.toMatchObject({
      name: "AppError",
    });
    expect(await again(() => kv().get(key))).toBeUndefined();
  });
}
