import { execFile, spawn } from "node:child_process";
import { open, readFile } from "node:fs/promises";
import { createServer, type AddressInfo, type Server } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";

const run = promisify(execFile);
const POLL_MS = 50;
const PORT_ATTEMPTS = 100;

/** A process of ours. `mark` is a text in its command line by which it is told from a stranger with the same number. */
export interface Daemon {
  readonly name: string;
  readonly pid: number;
  readonly mark: string;
  readonly logFile: string;
}

export interface DaemonSpec {
  readonly name: string;
  readonly program: string;
  readonly args: readonly string[];
  readonly mark: string;
  readonly logFile: string;
}

/** Starts it on its own, its output in the log file; it outlives the process that started it. */
export async function startDaemon(spec: DaemonSpec): Promise<Daemon> {
  const log = await open(spec.logFile, "a");
  try {
    const child = spawn(spec.program, [...spec.args], { detached: true, stdio: ["ignore", log.fd, log.fd] });
    const pid = await new Promise<number>((resolve, reject) => {
      child.once("error", reject);
      child.once("spawn", () => resolve(child.pid ?? 0));
    });
    child.unref();
    return { name: spec.name, pid, mark: spec.mark, logFile: spec.logFile };
  } finally {
    await log.close();
  }
}

/**
 * Polls until `answers` says yes; throws with the end of the log when the process ends before, or the deadline passes.
 */
export async function waitUntilUp(daemon: Daemon, answers: () => Promise<boolean>, deadlineMs: number): Promise<void> {
  const end = performance.now() + deadlineMs;
  while (!(await answers())) {
    if (!(await isAlive(daemon))) throw new Error(`${daemon.name} ended while starting. ${await logTail(daemon)}`);
    if (performance.now() > end)
      throw new Error(`${daemon.name} did not answer within ${deadlineMs / 1000} s. ${await logTail(daemon)}`);
    await delay(POLL_MS);
  }
}

export async function isAlive(daemon: Daemon): Promise<boolean> {
  const line = await stateOf(daemon);
  return line !== "" && !line.startsWith("Z");
}

/** Its state as `ps` shows it, such as `S` or `T`; empty when there is no such process. */
async function stateOf(daemon: Daemon): Promise<string> {
  const line = await run("ps", ["-ww", "-o", "stat=,args=", "-p", String(daemon.pid)]).then(
    (result) => result.stdout.trim(),
    () => "",
  );
  return line.includes(daemon.mark) ? line : "";
}

/** Ends it if it still runs: politely first unless `now`, by force at the deadline. Idempotent. */
export async function stopDaemon(
  daemon: Daemon,
  options: { readonly now?: boolean; readonly deadlineMs?: number } = {},
): Promise<void> {
  if (!(await isAlive(daemon))) return;
  const end = performance.now() + (options.deadlineMs ?? 10_000);
  process.kill(daemon.pid, options.now === true ? "SIGKILL" : "SIGTERM");
  // One that is paused hears SIGTERM only when it goes on.
  if (options.now !== true) process.kill(daemon.pid, "SIGCONT");
  while (await isAlive(daemon)) {
    if (performance.now() > end) process.kill(daemon.pid, "SIGKILL");
    await delay(POLL_MS);
  }
}

/** Stops it in its tracks until it is resumed or killed; resolves when it stands. */
export async function pauseDaemon(daemon: Daemon): Promise<void> {
  if (!(await isAlive(daemon))) throw new Error(`${daemon.name} does not run.`);
  process.kill(daemon.pid, "SIGSTOP");
  while (!(await stateOf(daemon)).startsWith("T")) await delay(POLL_MS);
}

export async function resumeDaemon(daemon: Daemon): Promise<void> {
  if (!(await isAlive(daemon))) throw new Error(`${daemon.name} does not run.`);
  process.kill(daemon.pid, "SIGCONT");
}

/** So many ports that have no listener right now, on none of the addresses. */
export async function freePorts(count: number, addresses: readonly string[] = ["127.0.0.1"]): Promise<number[]> {
  const servers: Server[] = [];
  const ports: number[] = [];
  try {
    for (let attempt = 1; ports.length < count; attempt++) {
      if (attempt > count + PORT_ATTEMPTS) throw new Error("No free ports were found.");
      const port = await freePort(addresses, servers);
      if (port !== undefined) ports.push(port);
    }
    return ports;
  } finally {
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  }
}

/**
 * Holds it by servers, which are the caller's to close. Undefined when what is free on the first address is taken on
 * another.
 */
async function freePort(addresses: readonly string[], servers: Server[]): Promise<number | undefined> {
  let port = 0;
  for (const address of addresses) {
    const server = createServer();
    try {
      port = await listen(server, port, address);
      servers.push(server);
    } catch (error) {
      if (port === 0 || (error as NodeJS.ErrnoException).code !== "EADDRINUSE") throw error;
      return undefined;
    }
  }
  return port;
}

function listen(server: Server, port: number, address: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, address, () => resolve((server.address() as AddressInfo).port));
  });
}

async function logTail(daemon: Daemon): Promise<string> {
  const text = await readFile(daemon.logFile, "utf8").catch(() => "");
  return `End of ${daemon.logFile}:\n${text.split("\n").slice(-15).join("\n")}`;
}
