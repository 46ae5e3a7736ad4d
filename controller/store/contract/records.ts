import { describe } from "vitest";
import type { ContractSubject } from "./harness.ts";
import { recordChecksContract, recordTenantsContract } from "./records/bounds.ts";
import { recordsInCommitContract } from "./records/in-commit.ts";
import { recordLivesContract } from "./records/lives.ts";
import { removedRecordsContract, repetitionsAfterRemovalContract } from "./records/removal.ts";
import { differingRecordsContract, repeatedRecordsContract } from "./records/repetitions.ts";
import { rewrittenRecordsContract } from "./records/rewriting.ts";
import { recordsSubject } from "./records/subject.ts";
import { timelinesContract, walksContract } from "./records/timelines.ts";

/** The part of the contract about records. */
export function recordsContract(subject: () => ContractSubject): void {
  describe("records", () => {
    const store = recordsSubject(subject);
    repeatedRecordsContract(store);
    differingRecordsContract(store);
    recordLivesContract(store);
    removedRecordsContract(store);
    repetitionsAfterRemovalContract(store);
    rewrittenRecordsContract(store);
    timelinesContract(store);
    walksContract(store);
    describe("in the commit of a write", () => recordsInCommitContract(store));
    recordChecksContract(store);
    recordTenantsContract(store);
  });
}
