import type { KvEntry, KvStore } from "../../../kv.ts";
import { again, bytes, type ContractSubject, put } from "../../harness.ts";

export const MINUTE_MS = 60_000;

/** The store under test at two times of day, and its expiring entries. */
export interface ExpirySubject {
  readonly subject: () => ContractSubject;
  readonly now: () => KvStore;
  /** The store at a time at which `expiring` entries have expired. */
  readonly later: () => KvStore;
  /** Puts a new entry that expires in a minute. */
  readonly expiring: (key: string, value?: string) => Promise<KvEntry>;
}

export function expirySubject(subject: () => ContractSubject): ExpirySubject {
  return {
    subject,
    now: () => subject().store.kv,
    later: () => subject().at(2 * MINUTE_MS),
    async expiring(key, value = "old") {
      const { store, clock } = subject();
      await put(store.kv, key, bytes(value), { expiresAtMs: clock.nowMs() + MINUTE_MS });
      return (await again(() => store.kv.get(key)))!;
    },
  };
}
