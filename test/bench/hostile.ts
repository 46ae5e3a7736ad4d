import { HOSTILE_REQUESTS } from "../security/hostile.ts";
import { held } from "../security/measure.ts";
import { openWorld } from "../security/objects.ts";
import type { Bench, Figure } from "./frame.ts";

const STOP_GOAL_MS = 50;
const HEAP_GOAL_MB = 128;

/**
 * What one request that is made to hurt does to all others; the smaller of two, as the first one also compiles the
 * code.
 */
export const hostileBench: Bench = {
  name: "hostile",
  async run() {
    await using world = await openWorld();
    const figures: Figure[] = [];
    for (const request of HOSTILE_REQUESTS) {
      const [first, second] = [await held(world, request), await held(world, request)];
      const told = `${request.name} (${second.outcome})`;
      const stopMs = Math.min(first.stopMs, second.stopMs);
      figures.push({
        name: `${told}: longest stop`,
        unit: "ms",
        ours: stopMs,
        against: STOP_GOAL_MS,
        againstName: "the goal",
        kind: "most",
        goal: 1,
      });
      const heapMb = Math.min(first.heapMb, second.heapMb);
      figures.push({
        name: `${told}: heap`,
        unit: "MB",
        ours: heapMb,
        against: HEAP_GOAL_MB,
        againstName: "the goal",
        kind: "most",
        goal: 1,
      });
    }
    return figures;
  },
};
