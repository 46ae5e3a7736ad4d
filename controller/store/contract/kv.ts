import { describe } from "vitest";
import type { KvStore } from "../kv.ts";
import type { OpenSubject } from "./harness.ts";
import { limitsContract, tenantsContract } from "./kv/bounds.ts";
import { expiryContract } from "./kv/expiry.ts";
import { conditionsContract, keysContract } from "./kv/keys.ts";
import { leasesContract } from "./kv/leases.ts";
import { listsContract, watchesContract } from "./kv/lists.ts";
import { kvModelTest } from "./kv/model.ts";
import { transactionsContract } from "./kv/transactions.ts";
import { opened } from "./opened.ts";

/** All promises of `KvStore`, for any engine. */
export function kvContract(name: string, open: OpenSubject): void {
  describe(`KvStore: ${name}`, () => {
    const subject = opened(open);
    const kv = (): KvStore => subject().store.kv;
    keysContract(kv);
    conditionsContract(kv);
    listsContract(kv);
    watchesContract(subject);
    leasesContract(subject);
    transactionsContract(kv);
    limitsContract(kv);
    tenantsContract(subject);
    expiryContract(subject);
    kvModelTest(name, kv);
  });
}
