import { appendFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { AGENT_SESSION_LEASE_MS, SESSION_STEADY_MS } from "../../../common/limits.ts";
import { clusterVariables, Installation } from "../../e2e/installation.ts";
import { eventually } from "../../helpers/programs/programs.ts";
import { followAccessLog, isThere, markedLine } from "../records/access.ts";
import { withCluster } from "../driver/cluster.ts";
import { median, type Bench, type Figure } from "../driver/frame.ts";

const ROUNDS = 3;
const LIMIT_MS = 10_000;
const DEADLINE_MS = 180_000;
const HOST = "web-1";

/**
 * The one of two controllers that has the agent's session ends. Measures the time until the other runs a command on the
 * host and finds a line written since.
 */
export const failoverBench: Bench = {
  name: "failover",
  run: () =>
    withCluster(async (settings) => {
      const variables = clusterVariables(settings);
      const first = await Installation.start(variables);
      const second = await Installation.start({ ...variables, ODP_SECRET_KEY_FILE: join(first.folder, "secret.key") });
      try {
        return await rounds(new Pair(first, second, join(await followAccessLog(first), "access.log")));
      } finally {
        await second.controller.kill();
        await first.stop();
        await second.stop();
      }
    }),
};

async function rounds(pair: Pair): Promise<Figure[]> {
  const killed: number[] = [];
  const paused: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) killed.push(await pair.killHolder());
  for (let round = 0; round < ROUNDS; round += 1) paused.push(await pair.pauseHolder());
  const figure = { unit: "ms", against: LIMIT_MS, againstName: "limit", kind: "most", goal: 1 } as const;
  return [
    { ...figure, name: "kill -9 to command and new object at the other, median", ours: median(killed) },
    { ...figure, name: "kill -9 to command and new object at the other, slowest", ours: Math.max(...killed) },
    { ...figure, name: "pause to command and new object at the other, median", ours: median(paused) },
    { ...figure, name: "pause to command and new object at the other, slowest", ours: Math.max(...paused) },
  ];
}

class Pair {
  #holder: Installation;
  #other: Installation;
  readonly #log: string;
  #lines = 0;

  constructor(holder: Installation, other: Installation, log: string) {
    this.#holder = holder;
    this.#other = other;
    this.#log = log;
  }

  async killHolder(): Promise<number> {
    await this.#settled();
    await this.#holder.controller.kill("SIGKILL");
    const ms = await this.#worksAtOther();
    await this.#holder.startController();
    this.#swap();
    return ms;
  }

  async pauseHolder(): Promise<number> {
    await this.#settled();
    const { pid } = this.#holder.controller;
    process.kill(pid, "SIGSTOP");
    try {
      return await this.#worksAtOther();
    } finally {
      process.kill(pid, "SIGCONT");
      this.#swap();
    }
  }

  /** Waits until both have served long enough that the round before affects neither the agent nor the leases. */
  async #settled(): Promise<void> {
    await pause(Math.max(SESSION_STEADY_MS, AGENT_SESSION_LEASE_MS) + 1_000);
    for (const odp of [this.#other, this.#holder]) await this.#works(odp);
  }

  async #worksAtOther(): Promise<number> {
    const startedMs = performance.now();
    await this.#works(this.#other);
    return performance.now() - startedMs;
  }

  async #works(odp: Installation): Promise<void> {
    const line = (this.#lines += 1);
    await appendFile(this.#log, markedLine(line));
    await eventually(
      "a command is run",
      DEADLINE_MS,
      async () => (await echo(odp).catch(() => "")).includes("works") || undefined,
    );
    await eventually(
      "a line is there",
      DEADLINE_MS,
      async () => (await isThere(odp, line).catch(() => false)) || undefined,
    );
  }

  #swap(): void {
    [this.#holder, this.#other] = [this.#other, this.#holder];
  }
}

async function echo(odp: Installation): Promise<string> {
  const param = JSON.stringify({ cmd: "echo works", "HOST!": HOST, timeout: 20 });
  return String(
    await odp.ok("GET", `/job/remote_command@system/common?receive_output=true&param=${encodeURIComponent(param)}`),
  );
}
