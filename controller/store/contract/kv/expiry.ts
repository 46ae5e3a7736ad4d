import { describe } from "vitest";
import type { ContractSubject } from "../harness.ts";
import { conditionsOverExpired, expiredIsAbsent } from "./expiry/absence.ts";
import { clocksThatDiffer } from "./expiry/clocks.ts";
import { nextLife, prolonging } from "./expiry/lives.ts";
import { momentsAndValues } from "./expiry/moments.ts";
import { listsOverExpired, watchesOfExpiry } from "./expiry/pages.ts";
import { expirySubject } from "./expiry/subject.ts";

/** The promises of `KvStore` for expiring entries. `at` reads the store at other times of day, so no test waits. */
export function expiryContract(subject: () => ContractSubject): void {
  describe("expiry", () => {
    const store = expirySubject(subject);
    expiredIsAbsent(store);
    conditionsOverExpired(store);
    nextLife(store);
    prolonging(store);
    listsOverExpired(store);
    watchesOfExpiry(store);
    clocksThatDiffer(store);
    momentsAndValues(store);
  });
}
