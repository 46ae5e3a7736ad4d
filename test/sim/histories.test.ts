import { expect, it } from "vitest";
import { prove } from "../helpers/runs/evidence.ts";
import { runHistories } from "./histories.ts";
import { runHistory } from "./run.ts";
import { FAILED_ONCE } from "./seeds.ts";

const FROM = Number(process.env.ODP_SIM_FROM ?? 1);
const COUNT = Number(process.env.ODP_SIM_COUNT ?? 150);
const REPLAYED = 10;
const TIMEOUT_MS = 1_800_000;

it(
  "a history replays exactly from its seed",
  async () => {
    for (let seed = FROM; seed < FROM + REPLAYED; seed++) {
      const first = await runHistory({ seed });
      const again = await runHistory({ seed, tracing: true });
      expect(again.fingerprint, `seed ${seed}`).toBe(first.fingerprint);
      expect(again.events).toBe(first.events);
    }
  },
  TIMEOUT_MS,
);

it.each(FAILED_ONCE)(
  "what was found by seed $seed stays mended: $found",
  async ({ seed }) => {
    expect((await runHistory({ seed })).wrong).toEqual([]);
  },
  TIMEOUT_MS,
);

it(
  `${COUNT} histories from seed ${FROM} on keep every promise`,
  async () => {
    const { wrong, ...total } = await runHistories({ from: FROM, count: COUNT });
    for (const [seed, what] of wrong) console.log(`npm run sim -- --seed ${seed} --trace\n  ${what.join("\n  ")}`);
    expect([...wrong.keys()], "seeds of histories that went wrong").toEqual([]);
    expect(total.histories).toBe(COUNT);
    expect(total.lines).toBeGreaterThan(0);
    expect(total.jobs).toBeGreaterThan(0);
    prove("simulated-histories", { ...total, seeds: `${FROM} to ${FROM + COUNT - 1}` });
  },
  TIMEOUT_MS,
);
