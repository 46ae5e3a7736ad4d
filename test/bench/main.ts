// Patterns run in the same way as in the programs.
import "../helpers/program-flags.ts";
import { agentBench } from "./agent.ts";
import { cassandraQueriesBench } from "./cassandra-queries.ts";
import { classesBench } from "./classes.ts";
import { configBench } from "./config.ts";
import { contextBench } from "./context.ts";
import { crudBench } from "./crud.ts";
import { failoverBench } from "./failover.ts";
import { firingsBench } from "./firings.ts";
import { fleetBench } from "./fleet.ts";
import { line, machine, type Bench, type Figure } from "./frame.ts";
import { groupsBench } from "./groups.ts";
import { growthBench } from "./growth.ts";
import { hostileBench } from "./hostile.ts";
import { httpBench } from "./http.ts";
import { ingestClusterBench } from "./ingest-cluster.ts";
import { ingestBench } from "./ingest.ts";
import { latencyBench } from "./latency.ts";
import { latenessBench } from "./lateness.ts";
import { layoutsBench } from "./layouts.ts";
import { millionBench } from "./million.ts";
import { mqlBench } from "./mql.ts";
import { neighboursBench } from "./neighbours.ts";
import { objectsBench } from "./objects.ts";
import { runPaired } from "./paired.ts";
import { patternsBench } from "./patterns.ts";
import { recoveryBench } from "./recovery.ts";
import { rulesBench } from "./rules.ts";
import { runsBench } from "./runs.ts";
import { schedulesBench } from "./schedules.ts";
import { scriptsBench } from "./scripts.ts";
import { clusterStoreBench } from "./store-cluster.ts";
import { embeddedStoreBench } from "./store-embedded.ts";
import { termsBench } from "./terms.ts";
import { tagsBench } from "./tags.ts";
import { transferBench } from "./transfer.ts";
import { triggersBench } from "./triggers.ts";
import { usersBench } from "./users.ts";
import { wordsBench } from "./words.ts";

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
  neighboursBench,
  crudBench,
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
