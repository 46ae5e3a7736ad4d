import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { HOSTILE_BODIES, HOSTILE_TARGETS } from "../security/hostile-bodies.ts";
import { openWorld } from "../security/world.ts";
import { quantile, type Figure } from "./frame.ts";

const CALLS_AT_ONCE = 100;
const P99_GOAL_MS = 250;
/** Twice what the bodies of all calls may hold (`body_memory_mib`): the rest is what was not collected yet. */
const RESIDENT_GOAL_MB = 2_048;
const SAMPLE_MS = 10;

interface Call {
  readonly url: string;
  readonly type: string;
  /** Holds the body. */
  readonly file: string;
}

/** A process that reads all bodies, says so, sends them at once when it is told to, and says what was answered. */
const SENDING = `
const { readFileSync } = require("node:fs");
const { request } = require("node:http");
const send = ({ url, type, body }) => new Promise((resolve) => {
  const headers = { "content-type": type, "content-length": body.length };
  const sent = request(url, { method: "POST", headers, agent: false }, (answer) => {
    let text = "";
    answer.on("data", (piece) => (text += piece));
    answer.on("end", () => resolve(JSON.parse(text).code ?? "ok"));
  });
  sent.on("error", () => resolve("connection"));
  sent.end(body);
});
process.once("message", (calls) => {
  const bodies = new Map(calls.map(({ file }) => [file, readFileSync(file)]));
  process.once("message", async () =>
    process.send(await Promise.all(calls.map(({ file, ...call }) => send({ ...call, body: bodies.get(file) })))));
  process.send("ready");
});`;

/** A thread that calls one address again and again, and answers how long each call took. */
const PROBING = `
const { parentPort, workerData } = require("node:worker_threads");
let isOver = false;
parentPort.once("message", () => (isOver = true));
(async () => {
  const times = [];
  while (!isOver) {
    const began = performance.now();
    await (await fetch(workerData)).arrayBuffer();
    times.push(performance.now() - began);
  }
  parentPort.postMessage(times);
})();`;

/** How long a look at the controller's health takes while a hundred hostile calls are under way, and the memory of it. */
export async function crowdFigures(): Promise<readonly Figure[]> {
  await using controller = await openWorld();
  const address = await controller.app.listen({ port: 0, host: "127.0.0.1" });
  const folder = await mkdtemp(join(tmpdir(), "odp-hostile-"));
  try {
    return await measured(address, await crowd({ address, session: await controller.signIn(), folder }));
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function measured(address: string, calls: readonly Call[]): Promise<readonly Figure[]> {
  const sender = spawn(process.execPath, ["-e", SENDING], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  const ready = once(sender, "message");
  sender.send([...calls]);
  await ready;
  const prober = new Worker(PROBING, { eval: true, workerData: `${address}/healthz` });
  await once(prober, "online");
  const resident = peakResident();
  const answered = once(sender, "message") as Promise<[readonly string[]]>;
  sender.send("send");
  const [codes] = await answered;
  const probed = once(prober, "message") as Promise<[readonly number[]]>;
  prober.postMessage("over");
  const [times] = await probed;
  sender.kill();
  await prober.terminate();
  const told = [...new Set(codes)].map((code) => `${codes.filter((one) => one === code).length} ${code}`).join(", ");
  const beside = `beside ${calls.length} hostile calls at once`;
  const goal = { againstName: "the goal", kind: "most", goal: 1 } as const;
  return [
    {
      name: `p99 of ${times.length} /healthz ${beside} (${told})`,
      unit: "ms",
      ours: quantile(times, 0.99),
      against: P99_GOAL_MS,
      ...goal,
    },
    { name: `memory of the process ${beside}`, unit: "MB", ours: resident.end(), against: RESIDENT_GOAL_MB, ...goal },
  ];
}

interface Crowding {
  readonly address: string;
  readonly session: string;
  readonly folder: string;
}

/** In turns to each endpoint that decodes large bodies. */
async function crowd({ address, session, folder }: Crowding): Promise<readonly Call[]> {
  const targets = HOSTILE_TARGETS.filter(({ takesLarge }) => takesLarge);
  const bodies = HOSTILE_BODIES.filter(({ always }) => always);
  const all: Call[] = [];
  for (const { type, payload } of bodies)
    for (const { path, member } of targets) {
      const file = join(folder, String(all.length));
      await writeFile(file, payload(member));
      all.push({ url: `${address}${path}?sessionid=${session}`, type, file });
    }
  return Array.from({ length: CALLS_AT_ONCE }, (_, at) => all[at % all.length]).filter((one) => one !== undefined);
}

function peakResident(): { readonly end: () => number } {
  let most = 0;
  const look = (): void => void (most = Math.max(most, process.memoryUsage.rss() / 1_048_576));
  const timer = setInterval(look, SAMPLE_MS);
  return {
    end() {
      clearInterval(timer);
      look();
      return most;
    },
  };
}
