// Patterns run in the same way as in the programs.
import "../helpers/programs/program-flags.ts";
import { agentBench } from "./records/agent.ts";
import { cassandraQueriesBench } from "./store/cassandra-queries.ts";
import { classesBench } from "./objects/classes.ts";
import { commandsBench } from "./jobs/commands.ts";
import { configBench } from "./http/config.ts";
import { contextBench } from "./http/context.ts";
import { crudBench } from "./http/crud.ts";
import { failoverBench } from "./jobs/failover.ts";
import { filesBench } from "./files/files.ts";
import { firingsBench } from "./jobs/firings.ts";
import { fleetBench } from "./jobs/fleet.ts";
import { line, machine, type Bench, type Figure } from "./driver/frame.ts";
import { groupsBench } from "./http/groups.ts";
import { growthBench } from "./store/growth.ts";
import { hostileBench } from "./hostile/hostile.ts";
import { httpBench } from "./http/http.ts";
import { ingestClusterBench } from "./records/ingest-cluster.ts";
import { ingestBench } from "./records/ingest.ts";
import { loadBench } from "./http/load.ts";
import { latencyBench } from "./records/latency.ts";
import { latenessBench } from "./jobs/lateness.ts";
import { layoutsBench } from "./store/layouts.ts";
import { millionBench } from "./store/million.ts";
import { mqlBench } from "./objects/mql.ts";
import { neighboursBench } from "./http/neighbours.ts";
import { objectsBench } from "./objects/objects.ts";
import { runPaired } from "./driver/paired.ts";
import { patternsBench } from "./records/patterns.ts";
import { recoveryBench } from "./records/recovery.ts";
import { rulesBench } from "./records/rules.ts";
import { runsBench } from "./jobs/runs.ts";
import { schedulesBench } from "./jobs/schedules.ts";
import { scriptsBench } from "./objects/scripts.ts";
import { startBench } from "./http/start.ts";
import { clusterStoreBench } from "./store/store-cluster.ts";
import { embeddedStoreBench } from "./store/store-embedded.ts";
import { targetsBench } from "./jobs/targets.ts";
import { termsBench } from "./store/terms.ts";
import { tagsBench } from "./objects/tags.ts";
import { transferBench } from "./objects/transfer.ts";
import { triggersBench } from "./objects/triggers.ts";
import { usersBench } from "./http/users.ts";
import { wordsBench } from "./store/words.ts";

/**
 * Run by `npm run bench [-- name …]`: figures as ratios inside one run. A missed goal is printed and is no error.
 */
const BENCHES: readonly Bench[] = [
  httpBench,
  mqlBench,
  embeddedStoreBench,
  clusterStoreBench,
  layoutsBench,
  agentBench,
  ingestBench,
  ingestClusterBench,
  latencyBench,
  recoveryBench,
  failoverBench,
  commandsBench,
  targetsBench,
  neighboursBench,
  crudBench,
  loadBench,
  objectsBench,
  patternsBench,
  millionBench,
  groupsBench,
  cassandraQueriesBench,
  transferBench,
  classesBench,
  configBench,
  contextBench,
  tagsBench,
  termsBench,
  wordsBench,
  schedulesBench,
  firingsBench,
  latenessBench,
  runsBench,
  rulesBench,
  scriptsBench,
  triggersBench,
  fleetBench,
  hostileBench,
  growthBench,
  usersBench,
  filesBench,
  startBench,
];

const wanted = process.argv.slice(2);
const beside = process.env.ODP_BENCH_BESIDE;
console.log(machine());
if (beside !== undefined) await runPaired(beside, wanted);
else await runAlone();

async function runAlone(): Promise<void> {
  for (const bench of BENCHES.filter(({ name }) => wanted.length === 0 || wanted.includes(name))) {
    console.log(`\n${bench.name}`);
    const tell = (figure: Figure): void => console.log(`  ${line(figure)}`);
    for (const figure of await bench.run(tell)) tell(figure);
  }
}
