import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { once } from "node:events";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import type { ProxiedHost } from "../../../controller/areas/hosts/types.ts";
import { freePort } from "../programs/programs.ts";

/** A real OpenSSH server on loopback with its own keys, for the user who runs the tests. */
export interface Sshd extends AsyncDisposable {
  readonly port: number;
  readonly username: string;
  /** The only key it accepts. */
  readonly privateKey: string;
  /** Fingerprint of its host key, `SHA256:…`. */
  readonly fingerprint: string;
  /** Home of the user who signs in. */
  readonly home: string;
}

/** The route to it through the jump host `gate`, with its own credentials and key. */
export function wayBehindGate(
  { port, username, privateKey, fingerprint }: Sshd,
  more: Partial<ProxiedHost>,
): ProxiedHost {
  return {
    ...{ host: "127.0.0.1", proxy: "gate", group: "dbs", port, username, secret: privateKey, sshkey: fingerprint },
    noteKey: () => Promise.resolve(),
    ...more,
  };
}

export interface SshdOptions {
  /** False: it forwards no connections. */
  readonly forwards?: boolean;
}

const BINARIES = ["/usr/sbin/sshd", "/usr/bin/sshd", "/sbin/sshd"];

/** Starts the server; `undefined` if there is no OpenSSH server and none can be installed. */
export async function startSshd(options: SshdOptions = {}): Promise<Sshd | undefined> {
  const binary = findSshd() ?? installSshd();
  if (binary === undefined) return undefined;
  const folder = await mkdtemp(join(tmpdir(), "odp-sshd-"));
  const hostKey = join(folder, "host_key");
  const userKey = join(folder, "user_key");
  for (const file of [hostKey, userKey]) execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", file]);
  const authorized = join(folder, "authorized_keys");
  await writeFile(authorized, await readFile(`${userKey}.pub`));
  await chmod(authorized, 0o600);
  const home = join(folder, "home");
  mkdirSync(home);
  // A server run by root refuses to start without this folder.
  if (userInfo().uid === 0) mkdirSync("/run/sshd", { recursive: true });
  const port = await freePort();
  const config = join(folder, "sshd_config");
  await writeFile(config, configOf({ folder, hostKey, authorized, port, home, forwards: options.forwards ?? true }));
  const server = spawn(binary, ["-D", "-e", "-f", config], { stdio: ["ignore", "ignore", "pipe"] });
  const errors: Buffer[] = [];
  server.stderr.on("data", (chunk: Buffer) => errors.push(chunk));
  const exited = once(server, "exit");
  await listening(port, () => {
    if (server.exitCode !== null) throw new Error(`sshd did not start: ${Buffer.concat(errors).toString()}`);
  });
  return {
    port,
    username: userInfo().username,
    privateKey: await readFile(userKey, "utf8"),
    fingerprint:
      execFileSync("ssh-keygen", ["-lf", `${hostKey}.pub`])
        .toString()
        .split(" ")[1] ?? "",
    home,
    [Symbol.asyncDispose]: async () => {
      server.kill("SIGTERM");
      await exited;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function findSshd(): string | undefined {
  return BINARIES.find((path) => existsSync(path));
}

function installSshd(): string | undefined {
  if (userInfo().uid !== 0 || !existsSync("/usr/bin/apt-get")) return undefined;
  try {
    execFileSync("apt-get", ["install", "-y", "-q", "openssh-server"], { stdio: "ignore", timeout: 240_000 });
  } catch {
    return undefined;
  }
  return findSshd();
}

/** Commands and SFTP start in `home`, so that the real home stays clean. */
function configOf(of: {
  folder: string;
  hostKey: string;
  authorized: string;
  port: number;
  home: string;
  forwards: boolean;
}): string {
  return [
    `Port ${of.port}`,
    "ListenAddress 127.0.0.1",
    `HostKey ${of.hostKey}`,
    `PidFile ${join(of.folder, "sshd.pid")}`,
    `AuthorizedKeysFile ${of.authorized}`,
    "StrictModes no",
    "UsePAM no",
    "PasswordAuthentication no",
    "PermitRootLogin yes",
    "MaxStartups 100",
    `AllowTcpForwarding ${of.forwards ? "yes" : "no"}`,
    `Subsystem sftp internal-sftp -d ${of.home}`,
    `SetEnv HOME=${of.home}`,
    "",
  ].join("\n");
}

/** Polls the server process until it answers. */
async function listening(port: number, check: () => void): Promise<void> {
  const untilMs = Date.now() + 10_000;
  while (Date.now() < untilMs) {
    check();
    const socket = connect(port, "127.0.0.1");
    const open = await new Promise<boolean>((resolve) =>
      socket.once("connect", () => resolve(true)).once("error", () => resolve(false)),
    );
    socket.destroy();
    if (open) return;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error("sshd does not answer");
}
