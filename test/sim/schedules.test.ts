import { expect, it } from "vitest";
import { runSchedules } from "./schedules.ts";

const FROM = Number(process.env.ODP_SIM_FROM ?? 1);
/** A history of schedules takes longer than one of `histories.test.ts` and covers more of one kind. */
const COUNT = Number(process.env.ODP_SIM_SCHEDULES ?? 10);
const TIMEOUT_MS = 1_800_000;

it(
  `whatever becomes of controllers, agents and the store, every due time is run once on every host (${COUNT} histories from seed ${FROM})`,
  async () => {
    let runs = 0;
    for (let seed = FROM; seed < FROM + COUNT; seed++) {
      const { wrong, runs: of } = await runSchedules(seed);
      expect(wrong, `seed ${seed}`).toEqual([]);
      runs += of;
    }
    expect(runs).toBeGreaterThan(COUNT);
  },
  TIMEOUT_MS,
);
