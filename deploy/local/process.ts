import { execFile, spawn } from "node:child_process";
import { createSocket, type Socket } from "node:dgram";
import { open, readFile } from "node:fs/promises";
import { createServer, type Server } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";

const run = promisify(execFile);
const POLL_MS = 50;
const PORT_ATTEMPTS = 100;
/** Below the ports that systems give to outgoing connections, above those of well-known services. */
const PORTS: PortRange = { first: 20_000, last: 32_767 };

/**
 * A process started here. `mark` is a text in its command line that distinguishes it from a foreign process with the
 * same pid.
 */
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

/** Starts a detached process with its output in the log file. It outlives the process that started it. */
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
 * Polls until `answers` resolves with true. Throws with the end of the log if the process ends first or the deadline
 * passes.
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

/** Its state as `ps` shows it, such as `S` or `T`; empty if there is no such process. */
async function stateOf(daemon: Daemon): Promise<string> {
  const line = await run("ps", ["-ww", "-o", "stat=,args=", "-p", String(daemon.pid)]).then(
    (result) => result.stdout.trim(),
    () => "",
  );
  return line.includes(daemon.mark) ? line : "";
}

/**
 * Stops the process if it runs: by SIGTERM, or at once by SIGKILL with `now`; by SIGKILL after the deadline.
 * Idempotent.
 */
export async function stopDaemon(
  daemon: Daemon,
  options: { readonly now?: boolean; readonly deadlineMs?: number } = {},
): Promise<void> {
  if (!(await isAlive(daemon))) return;
  const end = performance.now() + (options.deadlineMs ?? 10_000);
  process.kill(daemon.pid, options.now === true ? "SIGKILL" : "SIGTERM");
  // A paused process receives SIGTERM only after SIGCONT.
  if (options.now !== true) process.kill(daemon.pid, "SIGCONT");
  while (await isAlive(daemon)) {
    if (performance.now() > end) process.kill(daemon.pid, "SIGKILL");
    await delay(POLL_MS);
  }
}

/** Pauses the process until it is resumed or killed. Resolves when it has stopped, and throws if it ends before. */
export async function pauseDaemon(daemon: Daemon): Promise<void> {
  if (!(await isAlive(daemon))) throw new Error(`${daemon.name} does not run.`);
  process.kill(daemon.pid, "SIGSTOP");
  while (!(await stateOf(daemon)).startsWith("T")) {
    if (!(await isAlive(daemon))) throw new Error(`${daemon.name} ended before it was paused.`);
    await delay(POLL_MS);
  }
}

export async function resumeDaemon(daemon: Daemon): Promise<void> {
  if (!(await isAlive(daemon))) throw new Error(`${daemon.name} does not run.`);
  process.kill(daemon.pid, "SIGCONT");
}

/** Processes begin at different places, so they rarely ask for the same port. */
let nextPort = process.pid * 101;

export interface PortRange {
  readonly first: number;
  readonly last: number;
}

/**
 * Ports without a listener on any of the addresses. They are reserved for this process until it ends, even while no
 * listener uses them: no other process that calls this gets them, and no outgoing connection takes them.
 */
export async function freePorts(
  count: number,
  addresses: readonly string[] = ["127.0.0.1"],
  { first, last }: PortRange = PORTS,
): Promise<number[]> {
  const ports: number[] = [];
  for (let attempt = 1; ports.length < count; attempt++) {
    if (attempt > count + PORT_ATTEMPTS) throw new Error("No free ports were found.");
    const port = first + (nextPort++ % (last - first + 1));
    if (await claim(port, addresses)) ports.push(port);
  }
  return ports;
}

/**
 * A claim is a UDP socket on the same port: the system grants it to one process, and releases it when that process
 * ends.
 */
async function claim(port: number, addresses: readonly string[]): Promise<boolean> {
  const sign = createSocket("udp4").unref();
  const bind = (): unknown => sign.bind({ port, address: "127.0.0.1", exclusive: true });
  const isClaimed = (await isGranted(sign, bind)) && (await isFree(port, addresses));
  // A socket that was refused its port stays open as well.
  if (!isClaimed) sign.close();
  return isClaimed;
}

async function isFree(port: number, addresses: readonly string[]): Promise<boolean> {
  const servers: Server[] = [];
  try {
    for (const address of addresses) {
      const server = createServer();
      servers.push(server);
      if (!(await isGranted(server, () => server.listen(port, address)))) return false;
    }
    return true;
  } finally {
    for (const server of servers.filter(({ listening }) => listening))
      await new Promise((resolve) => server.close(resolve));
  }
}

/** True if the system grants the port; false if it is in use. */
function isGranted(socket: Server | Socket, ask: () => unknown): Promise<boolean> {
  return new Promise((resolve, reject) => {
    socket.once("listening", () => resolve(true));
    socket.once("error", (error: NodeJS.ErrnoException) =>
      error.code === "EADDRINUSE" ? resolve(false) : reject(error),
    );
    ask();
  });
}

async function logTail(daemon: Daemon): Promise<string> {
  const text = await readFile(daemon.logFile, "utf8").catch(() => "");
  return `End of ${daemon.logFile}:\n${text.split("\n").slice(-15).join("\n")}`;
}
