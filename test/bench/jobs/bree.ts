import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { errorText } from "../../../common/errors.ts";

const PACKAGE = "bree@9.2.9";
const INSTALL_DEADLINE_MS = 300_000;

export interface BreeLoad {
  readonly schedules: number;
  readonly periodS: number;
  readonly measuredMs: number;
}

/**
 * Delays in ms with which the jobs of bree begin. Each runs in its own thread, as bree does it, and all are due in the
 * same second. If bree cannot be installed, prints the reason and returns `undefined`.
 */
export async function lateOfBree(load: BreeLoad): Promise<readonly number[] | undefined> {
  const folder = await mkdtemp(join(tmpdir(), "odp-bench-bree-"));
  try {
    await run("npm", ["install", "--no-audit", "--no-fund", "--prefix", folder, PACKAGE], INSTALL_DEADLINE_MS);
    const job = join(folder, "job.mjs");
    await writeFile(job, JOB);
    const main = join(folder, "main.mjs");
    await writeFile(main, mainOf(job, load));
    const told = await run(process.execPath, [main], load.measuredMs + INSTALL_DEADLINE_MS);
    return told
      .split("\n")
      .filter((line) => /^\d+$/.test(line))
      .map((line) => Number(line) % (1_000 * load.periodS));
  } catch (error) {
    console.log(`  bree is not measured: ${errorText(error)}`);
    return undefined;
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

const JOB = `import { parentPort } from "node:worker_threads";
parentPort.postMessage(Date.now());
parentPort.postMessage("done");
`;

function mainOf(job: string, { schedules, periodS, measuredMs }: BreeLoad): string {
  return `import Bree from "bree";
const jobs = Array.from({ length: ${schedules} }, (_, n) => ({
  name: "job-" + n, path: ${JSON.stringify(job)}, cron: "*/${periodS} * * * * *", hasSeconds: true,
}));
const bree = new Bree({
  root: false, logger: false, jobs,
  workerMessageHandler: ({ message }) => { if (typeof message === "number") console.log(message); },
});
await bree.start();
setTimeout(() => process.exit(0), ${measuredMs});
`;
}

async function run(command: string, parameters: readonly string[], deadlineMs: number): Promise<string> {
  const child = spawn(command, parameters, { stdio: ["ignore", "pipe", "pipe"], timeout: deadlineMs });
  let [told, failed] = ["", ""];
  child.stdout.on("data", (chunk: Buffer) => (told += chunk.toString()));
  child.stderr.on("data", (chunk: Buffer) => (failed = (failed + chunk.toString()).slice(-500)));
  const [code] = (await once(child, "close")) as [number | null];
  if (code !== 0) throw new Error(`${command} ${parameters[0] ?? ""} ended with ${String(code)}: ${failed.trim()}`);
  return told;
}
