import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { findLocalCluster } from "./cluster.ts";
import { freePorts, isAlive, startDaemon, stopDaemon, waitUntilUp, type Daemon } from "./process.ts";

let dir: string;
const started: Daemon[] = [];

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "odp-local-"));
});
afterEach(async () => {
  for (const daemon of started.splice(0)) await stopDaemon(daemon, { now: true });
  await rm(dir, { recursive: true, force: true });
});

async function daemon(script: string, mark = dir): Promise<Daemon> {
  const made = await startDaemon({ name: "daemon", program: process.execPath, args: ["-e", script, mark], mark, logFile: join(dir, "log") });
  started.push(made);
  return made;
}

test("a daemon is stopped once and for all, politely or by force", async () => {
  const polite = await daemon("setInterval(() => {}, 1000)");
  const stubborn = await daemon("process.on('SIGTERM', () => {}); console.log('ready'); setInterval(() => {}, 1000)");
  expect(await isAlive(polite)).toBe(true);
  await stopDaemon(polite);
  await stopDaemon(polite);
  await stopDaemon(stubborn, { deadlineMs: 200 });
  expect([await isAlive(polite), await isAlive(stubborn)]).toEqual([false, false]);
});

test("a process that merely has the same number is neither taken for ours nor ended", async () => {
  const stranger = await daemon("setInterval(() => {}, 1000)");
  const outdated: Daemon = { ...stranger, mark: "/another/cluster" };
  expect(await isAlive(outdated)).toBe(false);
  await stopDaemon(outdated);
  expect(await isAlive(stranger)).toBe(true);
});

test("a daemon that ends while starting is reported with the end of its log", async () => {
  const failing = await daemon("console.log('cannot bind the port'); process.exit(1)");
  await expect(waitUntilUp(failing, async () => false, 10_000)).rejects.toThrow(/ended while starting[^]*cannot bind the port/);
});

test("a daemon that never answers is given up at the deadline", async () => {
  const silent = await daemon("setInterval(() => {}, 1000)");
  await expect(waitUntilUp(silent, async () => false, 200)).rejects.toThrow(/did not answer within 0.2 s/);
});

test("free ports are different ones on which one can listen", async () => {
  const ports = await freePorts(5);
  expect(new Set(ports).size).toBe(5);
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(ports[0], "127.0.0.1", resolve));
  await new Promise((resolve) => server.close(resolve));
});

test("stopping a cluster ends its processes and forgets it; a second time there is nothing to stop", async () => {
  const part = await daemon("setInterval(() => {}, 1000)");
  const settings = { etcdEndpoints: [], cassandraContactPoints: [], cassandraDatacenter: "datacenter1" };
  await writeFile(join(dir, "cluster.json"), JSON.stringify({ settings, daemons: [part] }));
  await (await findLocalCluster(dir))?.stop();
  expect(await isAlive(part)).toBe(false);
  expect(await findLocalCluster(dir)).toBeUndefined();
});
