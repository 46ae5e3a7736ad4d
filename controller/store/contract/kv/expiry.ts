import { describe } from "vitest";
import type { ContractSubject } from "../harness.ts";
import { expiredConditionsContract, expiredEntriesContract } from "./expiry/absence.ts";
import { differingClocksContract } from "./expiry/clocks.ts";
import { nextLifeContract, prolongingContract } from "./expiry/lives.ts";
import { momentsContract } from "./expiry/moments.ts";
import { expiredListsContract, expiryWatchesContract } from "./expiry/pages.ts";
import { expirySubject } from "./expiry/subject.ts";

/** The promises of `KvStore` for expiring entries. `at` reads the store at other times of day, so no test waits. */
export function expiryContract(subject: () => ContractSubject): void {
  describe("expiry", () => {
    const store = expirySubject(subject);
    expiredEntriesContract(store);
    expiredConditionsContract(store);
    nextLifeContract(store);
    prolongingContract(store);
    expiredListsContract(store);
    expiryWatchesContract(store);
    differingClocksContract(store);
    momentsContract(store);
  });
}
