import { encodeJson } from "../format.ts";
import type { KvLease, KvStore } from "../kv.ts";

export interface LeaderKey {
  /** Names the leader, under its lease. */
  readonly key: string;
  /** Id of this controller. */
  readonly controller: string;
  readonly leaseMs: number;
}

/** Tries to become the leader. Returns the lease; `undefined`: another controller is the leader. */
export async function becomeLeader(
  kv: Pick<KvStore, "get" | "put" | "lease">,
  { key, controller, leaseMs }: LeaderKey,
): Promise<KvLease | undefined> {
  if (await kv.get(key)) return undefined;
  const lease = await kv.lease(leaseMs);
  try {
    if ((await kv.put(key, encodeJson({ controller }), { ifRevision: 0, lease: lease.id })).ok) return lease;
  } catch (error) {
    await endLeadership(lease);
    throw error;
  }
  await endLeadership(lease);
  return undefined;
}

/** Ends the lease. A failure does no harm, because the lease expires. */
export async function endLeadership(lease: KvLease): Promise<void> {
  await lease.revoke().catch(() => undefined);
}
