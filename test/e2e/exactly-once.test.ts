import { randomBytes } from "node:crypto";
import { describe, inject, test } from "vitest";
import type { ClusterSettings } from "../../deploy/local/cluster.ts";
import { prove } from "../helpers/evidence.ts";
import { carryOut, everythingOnce, kills, prepare } from "./exactly-once.ts";
import { Installation } from "./installation.ts";

/** In CI always the same moments; `ODP_SEED` tries others. */
const SEED = Number(process.env["ODP_SEED"] ?? 4);
const KILLS = 10;
const DEADLINE_MS = 600_000;

const cluster = inject("cluster");
const engines = [
  { name: "embedded", lines: 300_000, rotateEveryLines: 14_000, linesPerBurst: 500, match: "^access\\.log(\\.\\d+)?$", settings: { ODP_STORE: "embedded" } },
  { name: "cluster", lines: 100_000, rotateEveryLines: 6_000, linesPerBurst: 150, match: "^access\\.log$", settings: cluster.available ? clusterVariables(cluster.settings) : undefined },
] as const;

describe.each(engines)("on the $name engine", ({ name, lines, settings, ...log }) => {
  test.skipIf(settings === undefined)("every line and every scheduled run is there exactly once, through rotation and ten kills", { timeout: DEADLINE_MS }, async () => {
    const odp = await Installation.start(settings ?? {});
    try {
      await prepare(odp, log.match);
      const blows = kills(odp, KILLS);
      const rotations = await carryOut({ odp, seed: SEED, lines, pauseMs: 80, rotations: ["rename", "copy-truncate"], blows, ...log });
      const told = await everythingOnce(odp, lines);
      prove("exactly-once", { engine: name, lines, kills: KILLS, rotations, ...told, seed: SEED });
    } finally {
      await odp.stop();
    }
  });
});

/** A name space of its own, so that an earlier run left nothing in it. */
function clusterVariables(settings: ClusterSettings): Readonly<Record<string, string>> {
  return {
    ODP_STORE: "cluster",
    ODP_ETCD_ENDPOINTS: settings.etcdEndpoints.join(","),
    ODP_CASSANDRA_CONTACT_POINTS: settings.cassandraContactPoints.join(","),
    ODP_CASSANDRA_DATACENTER: settings.cassandraDatacenter,
    ODP_CLUSTER_PREFIX: `e2e${randomBytes(5).toString("hex")}`,
  };
}
