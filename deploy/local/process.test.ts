import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { findLocalCluster } from "./cluster.ts";
import {
  freePorts,
  isAlive,
  pauseDaemon,
  resumeDaemon,
  startDaemon,
  stopDaemon,
  waitUntilUp,
  type Daemon,
} from "./process.ts";

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
  const made = await startDaemon({
    name: "daemon",
    program: process.execPath,
    args: ["-e", script, mark],
    mark,
    logFile: join(dir, "log"),
  });
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
  await expect(waitUntilUp(failing, async () => false, 10_000)).rejects.toThrow(
    /ended while starting[^]*cannot bind the port/,
  );
});

test("a daemon that never answers is given up at the deadline", async () => {
  const silent = await daemon("setInterval(() => {}, 1000)");
  await expect(waitUntilUp(silent, async () => false, 200)).rejects.toThrow(/did not answer within 0.2 s/);
});

test("free ports are different ones on which one can listen", async () => {
  const ports = await freePorts(5);
  expect(new Set(ports).size).toBe(5);
  await using server = await listener(ports[0] ?? 0, "127.0.0.1");
  expect(server.listening).toBe(true);
});

test("a port is free on every address that was asked for", async () => {
  const port = await portNobodyHas();
  const only = { first: port, last: port };
  const addresses = ["127.0.0.1", "127.0.0.2", "127.0.0.3"];
  {
    await using taken = await listener(port, "127.0.0.2");
    expect(taken.listening).toBe(true);
    await expect(freePorts(1, addresses, only)).rejects.toThrow("No free ports");
  }
  expect(await freePorts(1, addresses, only)).toEqual([port]);
});

test("a port belongs to the process that asked for it until that ends, with a listener and without", async () => {
  const port = await portNobodyHas();
  const only = { first: port, last: port };
  const other = await daemon(
    `require("dgram").createSocket("udp4").bind(${port}, "127.0.0.1", () => console.log("has it")); setInterval(() => {}, 1000)`,
  );
  await expect.poll(() => readFile(join(dir, "log"), "utf8")).toContain("has it");
  await expect(freePorts(1, undefined, only)).rejects.toThrow("No free ports");
  await stopDaemon(other);
  expect(await freePorts(1, undefined, only)).toEqual([port]);
  await expect(freePorts(1, undefined, only)).rejects.toThrow("No free ports");
});

test.runIf(process.platform === "linux")("a port that others have leaves nothing open here", async () => {
  const port = await portNobodyHas();
  const only = { first: port, last: port };
  await freePorts(1, undefined, only);
  const open = async (): Promise<number> => (await readdir("/proc/self/fd")).length;
  const before = await open();
  // It is asked for a hundred times.
  await expect(freePorts(1, undefined, only)).rejects.toThrow("No free ports");
  expect((await open()) - before).toBeLessThan(50);
});

/** Ports that neither outgoing connections get from the system nor `freePorts` gives to others. */
const QUIET = { first: 10_000, count: 10_000 };
let nextQuiet = process.pid * 101;

/** A port without a listener, which nothing else takes while the test uses it. */
async function portNobodyHas(): Promise<number> {
  for (;;) {
    const port = QUIET.first + (nextQuiet++ % QUIET.count);
    const server = await listener(port, "0.0.0.0").catch(() => undefined);
    await server?.[Symbol.asyncDispose]();
    if (server !== undefined) return port;
  }
}

async function listener(port: number, address: string): Promise<Server> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(port, address, resolve));
  return server;
}

test("a paused daemon does nothing, goes on when resumed, and can be stopped politely while it stands", async () => {
  const counting = await daemon("let n = 0; setInterval(() => console.log(n++), 5)");
  const lines = async (): Promise<number> => (await readFile(join(dir, "log"), "utf8")).split("\n").length;
  await expect.poll(lines).toBeGreaterThan(2);
  await pauseDaemon(counting);
  const standing = await lines();
  expect(await isAlive(counting)).toBe(true);
  expect(await lines()).toBe(standing);
  await resumeDaemon(counting);
  await expect.poll(lines).toBeGreaterThan(standing);
  await pauseDaemon(counting);
  await stopDaemon(counting);
  await expect(resumeDaemon(counting)).rejects.toThrow("does not run");
});

test("pausing a daemon that ends meanwhile is an error with its name", async () => {
  const ending = await daemon("setInterval(() => {}, 1000)");
  const kill = vi.spyOn(process, "kill").mockImplementationOnce((pid) => process.kill(pid, "SIGKILL"));
  try {
    await expect(pauseDaemon(ending)).rejects.toThrow("daemon ended before it was paused");
  } finally {
    kill.mockRestore();
  }
});

test("stopping a cluster ends its processes and forgets it; a second time there is nothing to stop", async () => {
  const part = await daemon("setInterval(() => {}, 1000)");
  const settings = { etcdEndpoints: [], cassandraContactPoints: [], cassandraDatacenter: "datacenter1" };
  await writeFile(
    join(dir, "cluster.json"),
    JSON.stringify({ settings, running: [{ member: { name: "etcd" }, daemon: part }] }),
  );
  await (await findLocalCluster(dir))?.stop();
  expect(await isAlive(part)).toBe(false);
  expect(await findLocalCluster(dir)).toBeUndefined();
});
