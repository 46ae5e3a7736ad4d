import type { ThreadSlices } from "../../../controller/turns/slices.ts";

/** Slices that are over at every check, and the number of pauses. */
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
