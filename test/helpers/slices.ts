import type { ThreadSlices } from "../../controller/slices.ts";

/** Slices that are over at each look at the clock, and the number of pauses that follow. */
export function slicesOfOneStep() {
  const seen = { pauses: 0 };
  const slices = {
    isOverNow: () => true,
    pause: async () => {
      seen.pauses += 1;
    },
  } as unknown as ThreadSlices;
  return { seen, slices };
}
