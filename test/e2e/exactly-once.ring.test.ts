import { afterAll, beforeAll, expect, test } from "vitest";
import { prove } from "../helpers/runs/evidence.ts";
import { mendRing, openRing, type Ring } from "../helpers/cluster/ring.ts";
import { carryOut, everythingOnce, kills, prepare, type Blow } from "./exactly-once.ts";
import { clusterVariables, Installation } from "./installation.ts";

/** Selects the moments of the blows, always the same in CI; `ODP_TEST_SEED` selects others. */
const SEED = Number(process.env["ODP_TEST_SEED"] ?? 4);
const LINES = 20_000;
const DEADLINE_MS = 600_000;

let ring: Ring;

beforeAll(async () => {
  ring = await openRing();
});
afterAll(async () => {
  if (ring !== undefined) await mendRing(ring);
});

test("every line and every scheduled run is there exactly once, though a node of Cassandra, a member of etcd, the agent and the controller are killed", {
  timeout: DEADLINE_MS,
}, async () => {
  const odp = await Installation.start(clusterVariables(ring.settings));
  try {
    await prepare(odp, "^access\\.log(\\.\\d+)?$");
    const [agent, controller] = kills(odp, 2);
    const lost = (member: string): Blow => ({ what: `${member} is killed`, strike: () => ring.kill(member) });
    const back = (member: string): Blow => ({ what: `${member} is started again`, strike: () => ring.restart(member) });
    const leader = (await ring.etcdLeader()) ?? "etcd-1";
    const blows = [lost("cassandra-2"), agent, lost(leader), controller, back("cassandra-2"), back(leader)].filter(
      (blow) => blow !== undefined,
    );
    const rotations = await carryOut({
      odp,
      seed: SEED,
      lines: LINES,
      pauseMs: 60,
      linesPerBurst: 50,
      rotateEveryLines: 2_000,
      rotations: ["rename", "copy-truncate"],
      blows,
    });
    const told = await everythingOnce(odp, LINES);
    expect(rotations).toBeGreaterThan(5);
    prove("exactly-once", { engine: "ring of three", lines: LINES, kills: 4, rotations, ...told, seed: SEED });
  } finally {
    // The name space can only be removed if all members of the ring run.
    await mendRing(ring);
    await odp.stop();
  }
});
