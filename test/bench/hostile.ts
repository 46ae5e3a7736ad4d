import { BodySender } from "../security/body-sender.ts";
import { HOSTILE_BODIES, HOSTILE_TARGETS, type HostileTarget } from "../security/hostile-bodies.ts";
import { HOSTILE_REQUESTS } from "../security/hostile.ts";
import { held, heldBy, type Held } from "../security/measure.ts";
import { openWorld } from "../security/objects.ts";
import { openWorld as openController } from "../security/world.ts";
import type { Bench, Figure } from "./frame.ts";
import { crowdFigures } from "./hostile-crowd.ts";

const STOP_GOAL_MS = 50;
const HEAP_GOAL_MB = 128;

/**
 * What one request that is made to hurt does to all others, and what a hundred at once do. One that is beyond a goal is
 * made again, and the smaller figures count: the first one also compiles the code.
 */
export const hostileBench: Bench = {
  name: "hostile",
  async run() {
    await using world = await openWorld();
    const figures: Figure[] = [];
    for (const request of HOSTILE_REQUESTS) {
      const seen = await leastOf(() => held(world, request));
      const told = `${request.name} (${seen.outcome})`;
      figures.push(stopFigure(told, seen.stopMs), heapFigure(told, seen.heapMb));
    }
    return [...figures, ...(await bodyFigures()), ...(await crowdFigures())];
  },
};

async function leastOf(work: () => Promise<Held>): Promise<Held> {
  const first = await work();
  if (first.stopMs <= STOP_GOAL_MS && first.heapMb <= HEAP_GOAL_MB) return first;
  const second = await work();
  return {
    stopMs: Math.min(first.stopMs, second.stopMs),
    heapMb: Math.min(first.heapMb, second.heapMb),
    outcome: second.outcome,
  };
}

function stopFigure(name: string, ours: number): Figure {
  return { name: `${name}: longest stop`, unit: "ms", ours, against: STOP_GOAL_MS, ...THE_GOAL };
}

function heapFigure(name: string, ours: number): Figure {
  return { name: `${name}: heap`, unit: "MB", ours, against: HEAP_GOAL_MB, ...THE_GOAL };
}

const THE_GOAL = { againstName: "the goal", kind: "most", goal: 1 } as const;

/** For each way in which bodies are bounded and used the worst of its hostile bodies. */
async function bodyFigures(): Promise<readonly Figure[]> {
  await using controller = await openController();
  await using sender = new BodySender();
  const address = await controller.app.listen({ port: 0, host: "127.0.0.1" });
  const session = await controller.signIn();
  const figures: Figure[] = [];
  for (const target of HOSTILE_TARGETS) {
    const { name, path, member, isSignedIn } = target;
    const url = `${address}${path}${isSignedIn ? `?sessionid=${session}` : ""}`;
    const worst = { stop: { ms: 0, by: "" }, heap: { mb: 0, by: "" } };
    for (const body of bodiesFor(target)) {
      const { stopMs, heapMb } = await leastOf(async () => {
        await sender.prepare({ url, method: "POST", type: body.type, payload: body.payload(member) });
        return heldBy(() => sender.send());
      });
      if (stopMs > worst.stop.ms) worst.stop = { ms: stopMs, by: body.name };
      if (heapMb > worst.heap.mb) worst.heap = { mb: heapMb, by: body.name };
    }
    figures.push(
      stopFigure(`${name}, ${worst.stop.by}`, worst.stop.ms),
      heapFigure(`${name}, ${worst.heap.by}`, worst.heap.mb),
    );
  }
  return figures;
}

/** All where it matters what becomes of the values; elsewhere those of every run, and one where all are refused unread. */
function bodiesFor({ takesLarge, isOfAll }: HostileTarget): typeof HOSTILE_BODIES {
  if (isOfAll) return HOSTILE_BODIES;
  return HOSTILE_BODIES.filter(({ always }) => always).slice(takesLarge ? 0 : -1);
}
