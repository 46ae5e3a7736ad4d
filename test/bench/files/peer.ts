import { spawn } from "node:child_process";
import { once } from "node:events";

/**
 * A bare node:http server that keeps files in a folder. A written file is as durable as in odp on embedded: its bytes
 * are flushed, then its name.
 */
const BARE = `
const { createServer } = require("node:http");
const { createReadStream, createWriteStream } = require("node:fs");
const { open, rename } = require("node:fs/promises");
const { pipeline } = require("node:stream/promises");
const folder = process.argv[1];
let arrived = 0;
const answer = async (request, response) => {
  const path = folder + request.url;
  if (request.method === "GET") return pipeline(createReadStream(path), response);
  const raw = folder + "/raw" + arrived++;
  await pipeline(request, createWriteStream(raw, { flags: "wx", flush: true }));
  await rename(raw, path);
  const names = await open(folder, "r");
  await names.sync();
  await names.close();
  response.end();
};
const server = createServer((request, response) => void answer(request, response).catch(() => response.destroy()));
server.listen(0, "127.0.0.1", () => process.stdout.write(String(server.address().port)));
`;

/** Calls /healthz again and again until its standard input ends, then prints the milliseconds of each call. */
const PROBE = `
const { Agent, get } = require("node:http");
const agent = new Agent({ keepAlive: true });
const times = [];
let isOver = false;
process.stdin.resume().once("end", () => (isOver = true));
const end = () => {
  agent.destroy();
  process.stdout.write(JSON.stringify(times));
};
const ask = () => {
  const began = performance.now();
  const call = get({ agent, host: "127.0.0.1", port: process.argv[1], path: "/healthz", timeout: 60000 }, (answer) => {
    answer.resume().once("end", () => {
      if (answer.statusCode !== 200) throw new Error("/healthz answers " + answer.statusCode);
      times.push(performance.now() - began);
      if (isOver) end();
      else setTimeout(ask, 2);
    });
  });
  call.once("timeout", () => call.destroy(new Error("/healthz does not answer")));
};
ask();
`;

/** Runs in a process of its own, like the controller. */
export async function bareFileServer(folder: string): Promise<{ readonly port: number; stop(): void }> {
  const child = spawn(process.execPath, ["-e", BARE, folder], { stdio: ["ignore", "pipe", "inherit"] });
  const [port] = (await once(child.stdout, "data")) as [Buffer];
  return { port: Number(port.toString()), stop: () => void child.kill() };
}

/** Milliseconds of calls of /healthz, one after another, from a process of its own until the work has ended. */
export async function healthTimes(port: number, work: () => Promise<unknown>): Promise<readonly number[]> {
  const child = spawn(process.execPath, ["-e", PROBE, String(port)], { stdio: ["pipe", "pipe", "inherit"] });
  let output = "";
  child.stdout.on("data", (piece: Buffer) => (output += piece.toString()));
  const exited = once(child, "exit");
  try {
    await work();
  } finally {
    child.stdin.end();
  }
  const [code] = (await exited) as [number | null];
  if (code !== 0) throw new Error(`The calls of /healthz ended with ${code}.`);
  return JSON.parse(output) as readonly number[];
}
