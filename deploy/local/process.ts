import { execFile, spawn } from "node:child_process";
import { open, readFile } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";

const run = promisify(execFile);
const POLL_MS = 50;

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

/** Starts it on its own, its output in the log file; it outlives the one who started it. */
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

/** Polls until `answers` says yes; throws with the end of the log when the process ends before, or the deadline passes. */
export async function waitUntilUp(daemon: Daemon, answers: () => Promise<boolean>, deadlineMs: number): Promise<void> {
  const end = performance.now() + deadlineMs;
  while (!(await answers())) {
    if (!(await isAlive(daemon))) throw new Error(`${daemon.name} ended while starting. ${await logTail(daemon)}`);
    if (performance.now() > end) throw new Error(`${daemon.name} did not answer within ${deadlineMs / 1000} s. ${await logTail(daemon)}`);
    await delay(POLL_MS);
  }
}

export async function isAlive(daemon: Daemon): Promise<boolean> {
  const line = await run("ps", ["-o", "stat=,args=", "-p", String(daemon.pid)]).then(
    (result) => result.stdout.trim(),
    () => "",
  );
  return line.includes(daemon.mark) && !line.startsWith("Z");
}

/** Ends it if it still runs: politely first unless `now`, by force at the deadline. Idempotent. */
export async function stopDaemon(daemon: Daemon, options: { readonly now?: boolean; readonly deadlineMs?: number } = {}): Promise<void> {
  if (!(await isAlive(daemon))) return;
  const end = performance.now() + (options.deadlineMs ?? 10_000);
  process.kill(daemon.pid, options.now === true ? "SIGKILL" : "SIGTERM");
  while (await isAlive(daemon)) {
    if (performance.now() > end) process.kill(daemon.pid, "SIGKILL");
    await delay(POLL_MS);
  }
}

/** So many ports of 127.0.0.1 that nobody listens on right now. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer());
  try {
    return await Promise.all(
      servers.map(
        (server) =>
          new Promise<number>((resolve, reject) => {
            server.once("error", reject);
            server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port));
          }),
      ),
    );
  } finally {
    await Promise.all(servers.map((server) => new Promise((resolve) => server.close(resolve))));
  }
}

async function logTail(daemon: Daemon): Promise<string> {
  const text = await readFile(daemon.logFile, "utf8").catch(() => "");
  return `End of ${daemon.logFile}:\n${text.split("\n").slice(-15).join("\n")}`;
}
