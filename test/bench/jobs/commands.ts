import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pLimit from "p-limit";
import { Installation } from "../../e2e/installation.ts";
import { inTurns, median, type Bench, type Figure } from "../driver/frame.ts";
import { anonymousMb } from "../driver/process.ts";
import { ansible, pdsh, salt, type CommandPeer } from "./command-peers.ts";
import { tookMs } from "../driver/timed-program.ts";

/** Number of hosts, each with an agent of its own as a process on this machine; smaller for a trial. */
const HOSTS = Number(process.env["ODP_BENCH_AGENTS"] ?? 50);
const ENROLLED_AT_ONCE = 4;
const ROUNDS = 5;
const PASSWORD = "correct horse battery";
const SAID = "here";

/**
 * One command on many hosts, from the start of the program to its end: `odp exec` with agents, beside ansible and pdsh
 * over SSH and Salt with minions. All hosts are this machine, so both ends share its processors.
 */
export const commandsBench: Bench = {
  name: "commands",
  async run(tell) {
    const folder = await mkdtemp(join(tmpdir(), "odp-bench-commands-"));
    const odp = await Installation.start({ ODP_ADMIN_PASSWORD: PASSWORD });
    try {
      const hosts = Array.from({ length: HOSTS }, (_, at) => `host-${at}`);
      const limit = pLimit(ENROLLED_AT_ONCE);
      await Promise.all(hosts.map((host) => limit(() => odp.enrol(host))));
      const memory = hosts.map((host) => anonymousMb(odp.agent(host).pid));
      console.log(
        `  ${HOSTS} agents, anonymous memory of each ${median(memory).toFixed(1)} MB (median) after its start`,
      );
      const environment = { PATH: process.env["PATH"], ODP_CONFIG_DIR: folder };
      const program = ["dist/odp.js", "exec", hosts.join(","), `echo ${SAID}`];
      await tookMs([process.execPath, "dist/odp.js", "login", odp.url, "--user", "matrix.admin"], {
        environment,
        input: PASSWORD,
      });
      const ours = () => onAll([process.execPath, ...program], environment);
      for (const start of [pdsh, ansible, salt]) {
        const peer = await start({ hosts: HOSTS, said: SAID });
        if (peer !== undefined) tell(await beside(ours, peer));
      }
      return [];
    } finally {
      await odp.stop();
      await rm(folder, { recursive: true, force: true });
    }
  },
};

async function beside(ours: () => Promise<number>, peer: CommandPeer): Promise<Figure> {
  try {
    const theirs = () => onAll(peer.command, peer.environment);
    // A ratio counts work in time, so that more is better.
    const rates = await inTurns(rateOf(ours), rateOf(theirs), ROUNDS);
    return {
      ...{ name: `a command on ${HOSTS} hosts`, unit: "runs/s", ...rates },
      ...{ againstName: peer.name, kind: "ratio", goal: peer.goal },
    };
  } finally {
    await peer.stop();
  }
}

function rateOf(work: () => Promise<number>): () => Promise<number> {
  return async () => 1_000 / (await work());
}

/** Milliseconds of a program. Throws unless every host has said the word. */
async function onAll(command: readonly string[], environment: NodeJS.ProcessEnv): Promise<number> {
  const { ms, output } = await tookMs(command, { environment });
  const said = output.split("\n").filter((line) => line.trimEnd().endsWith(SAID)).length;
  if (said !== HOSTS) throw new Error(`${said} of ${HOSTS} hosts said ${SAID}: ${output.slice(0, 2_000)}`);
  return ms;
}
