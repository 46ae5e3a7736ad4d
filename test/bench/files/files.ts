import { Installation } from "../../e2e/installation.ts";
import type { Bench } from "../driver/frame.ts";
import { anonymousMb, residentMb } from "../driver/process.ts";
import { extractionFigures } from "./extraction.ts";
import { listingFigures } from "./folders.ts";
import { healthFigures } from "./health.ts";
import { searchFigures } from "./searches.ts";
import { transferFigures } from "./transfers.ts";

/** The file space of a controller as it ships, on embedded: contents over HTTP, lists, search, and what they cost others. */
export const filesBench: Bench = {
  name: "files",
  async run(tell) {
    await extractionFigures(tell);
    const odp = await Installation.start({});
    try {
      const { pid } = odp.controller;
      const before = { resident: residentMb(pid), anonymous: anonymousMb(pid) };
      await transferFigures(odp, tell);
      await listingFigures(odp, tell);
      await healthFigures(odp, tell);
      await searchFigures(odp, tell);
      const memory = { unit: "MB", againstName: "before", kind: "ratio", goal: 0 } as const;
      tell({ name: "resident memory at the end", ours: residentMb(pid), against: before.resident, ...memory });
      tell({ name: "of it anonymous", ours: anonymousMb(pid), against: before.anonymous, ...memory });
      return [];
    } finally {
      await odp.stop();
    }
  },
};
