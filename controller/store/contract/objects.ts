import { describe } from "vitest";
import type { OpenSubject } from "./harness.ts";
import { limitsContract, tenantsContract } from "./objects/bounds.ts";
import { chosenCellsContract } from "./objects/chosen-cells.ts";
import { edgesContract } from "./objects/edges.ts";
import { endsContract } from "./objects/ends.ts";
import { expiryContract } from "./objects/expiry.ts";
import { findContract, scanContract } from "./objects/finding.ts";
import { historyContract } from "./objects/history.ts";
import { objectsModelTest } from "./objects/model.ts";
import { slotsContract } from "./objects/slots.ts";
import { objectsSubject } from "./objects/subject.ts";
import { timesContract } from "./objects/times.ts";
import { opened } from "./opened.ts";
import { recordsContract } from "./records.ts";

/** All promises of `ObjectStore`, for any engine. */
export function objectsContract(name: string, open: OpenSubject): void {
  describe(`ObjectStore: ${name}`, () => {
    const subject = opened(open);
    const store = objectsSubject(subject);
    timesContract(store);
    findContract(store);
    scanContract(store);
    chosenCellsContract(store);
    historyContract(store);
    edgesContract(store);
    expiryContract(store);
    limitsContract(store);
    tenantsContract(store);
    endsContract(store);
    slotsContract(subject);
    recordsContract(subject);
    objectsModelTest(name, subject);
  });
}
