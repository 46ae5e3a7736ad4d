import { HOSTILE_REQUESTS } from "../security/hostile.ts";
import { held } from "../security/measure.ts";
import { openWorld } from "../security/objects.ts";
import { BodySender } from "../security/body-sender.ts";
import { HOSTILE_BODIES, HOSTILE_TARGETS } from "../security/hostile-bodies.ts";
import { heldBy } from "../security/measure.ts";
import { openWorld as openController } from "../security/world.ts";
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
    return [...figures, ...(await bodyFigures())];
  },
};

/** For each way in which bodies are bounded and used the worst of all hostile bodies. */
async function bodyFigures(): Promise<readonly Figure[]> {
  await using controller = await openController();
  await using sender = new BodySender();
  const address = await controller.app.listen({ port: 0, host: "127.0.0.1" });
  const session = await controller.signIn();
  const figures: Figure[] = [];
  for (const { name, path, member, isSignedIn } of HOSTILE_TARGETS) {
    const url = `${address}${path}${isSignedIn ? `?sessionid=${session}` : ""}`;
    const worst = { stop: { ms: 0, by: "" }, heap: { mb: 0, by: "" } };
    for (const body of HOSTILE_BODIES) {
      const seen = [];
      for (let round = 0; round < 2; round++) {
        await sender.prepare({ url, method: "POST", type: body.type, payload: body.payload(member) });
        seen.push(await heldBy(() => sender.send()));
      }
      const ms = Math.min(...seen.map(({ stopMs }) => stopMs));
      const mb = Math.min(...seen.map(({ heapMb }) => heapMb));
      if (ms > worst.stop.ms) worst.stop = { ms, by: body.name };
      if (mb > worst.heap.mb) worst.heap = { mb, by: body.name };
    }
    const goal = { againstName: "the goal", kind: "most", goal: 1 } as const;
    figures.push(
      {
        name: `${name}, ${worst.stop.by}: longest stop`,
        unit: "ms",
        ours: worst.stop.ms,
        against: STOP_GOAL_MS,
        ...goal,
      },
      { name: `${name}, ${worst.heap.by}: heap`, unit: "MB", ours: worst.heap.mb, against: HEAP_GOAL_MB, ...goal },
    );
  }
  return figures;
}
