import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { open } from "lmdb";
import { Installation } from "../../e2e/installation.ts";
import { combinedLines, countOf, followAccessLog, isThere, markedLine } from "./access.ts";
import { median, type Bench, type Figure } from "../driver/frame.ts";
import { anonymousMb, cpuSeconds } from "../driver/process.ts";

const LINES_PER_ROUND = 100_000;
const ROUNDS = 5;
const POLL_MS = 500;
const ROUND_DEADLINE_MS = 300_000;
const MIB = 1_024 * 1_024;

/**
 * From the bytes of a followed file to acknowledged objects, by the processor time of agent and controller together.
 */
export const ingestBench: Bench = {
  name: "ingest",
  async run() {
    const odp = await Installation.start({ ODP_STORE: "embedded" });
    try {
      const folder = await followAccessLog(odp);
      const rounds: Round[] = [];
      for (let round = 0; round <= ROUNDS; round += 1) rounds.push(await ingestRound(odp, folder, round));
      const expected = (ROUNDS + 1) * (LINES_PER_ROUND + 1);
      const stored = await countOf(odp);
      if (stored !== expected) throw new Error(`${stored} of ${expected} lines are stored.`);
      // The first round warms up the compilers.
      return figures(rounds.slice(1), odp);
    } finally {
      await odp.stop();
    }
  },
};

interface Round {
  readonly mib: number;
  readonly agentSeconds: number;
  readonly controllerSeconds: number;
  readonly wallSeconds: number;
  /** MiB per second of processor time for the same lines, each parsed by one regular expression, put into bare lmdb. */
  readonly barePerCore: number;
}

async function ingestRound(odp: Installation, folder: string, round: number): Promise<Round> {
  const first = round * (LINES_PER_ROUND + 1);
  const last = first + LINES_PER_ROUND;
  const text = combinedLines(first, LINES_PER_ROUND) + markedLine(last);
  const barePerCore = await bareRound(text);
  const pids = { agent: odp.agent("web-1").pid, controller: odp.controller.pid };
  const before = { agent: cpuSeconds(pids.agent), controller: cpuSeconds(pids.controller), ms: performance.now() };
  await writeFile(join(folder, "access.log.new"), text);
  await rename(join(folder, "access.log.new"), join(folder, "access.log"));
  while (!(await isThere(odp, last))) {
    if (performance.now() - before.ms > ROUND_DEADLINE_MS)
      throw new Error(`The lines were not stored within ${ROUND_DEADLINE_MS} ms.`);
    await pause(POLL_MS);
  }
  return {
    mib: text.length / MIB,
    agentSeconds: cpuSeconds(pids.agent) - before.agent,
    controllerSeconds: cpuSeconds(pids.controller) - before.controller,
    wallSeconds: (performance.now() - before.ms) / 1_000,
    barePerCore,
  };
}

const BARE = /^(\S+) (\S+) (\S+) \[([^\]]+)\] "(\S+) (\S+) HTTP\/([\d.]+)" (\d+) (\d+) ("[^"]*") ("[^"]*")$/;

async function bareRound(text: string): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), "odp-bench-bare-"));
  const store = open<readonly string[], number>({ path: folder, overlappingSync: false });
  const before = process.cpuUsage();
  let n = 0;
  let written: Promise<unknown> = Promise.resolve();
  for (const line of text.split("\n")) {
    const fields = BARE.exec(line);
    if (fields) written = store.put(n++, fields.slice(1));
    if (n % 1_000 === 0) await written;
  }
  await written;
  const { user, system } = process.cpuUsage(before);
  await store.close();
  await rm(folder, { recursive: true });
  return text.length / MIB / ((user + system) / 1_000_000);
}

function figures(rounds: readonly Round[], odp: Installation): Figure[] {
  const perCore = median(
    rounds.map(({ mib, agentSeconds, controllerSeconds }) => mib / (agentSeconds + controllerSeconds)),
  );
  const bare = median(rounds.map(({ barePerCore }) => barePerCore));
  const part = (seconds: (round: Round) => number): number =>
    median(rounds.map((round) => (seconds(round) * 1_000_000) / LINES_PER_ROUND));
  const parts = `agent ${part((round) => round.agentSeconds).toFixed(1)}, controller ${part((round) => round.controllerSeconds).toFixed(1)} µs of processor a line`;
  const wall = median(rounds.map(({ mib, wallSeconds }) => mib / wallSeconds));
  const memory = `RssAnon: agent ${Math.round(anonymousMb(odp.agent("web-1").pid))} MB, controller ${Math.round(anonymousMb(odp.controller.pid))} MB`;
  const ours = { name: "follow → parse → acknowledged object", unit: "MiB/s per core", ours: perCore } as const;
  return [
    {
      ...ours,
      against: 5,
      againstName: `5 MiB/s; ${wall.toFixed(1)} MiB/s by the clock, ${parts}, ${memory}`,
      kind: "ratio",
      goal: 1,
    },
    {
      ...ours,
      against: bare,
      againstName: "one regular expression and one put into bare lmdb",
      kind: "ratio",
      goal: 0,
    },
  ];
}
