import { spawn } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { errorText } from "../../../common/errors.ts";
import { startSshd, type Sshd } from "../../helpers/hosts/sshd.ts";
import { eventually, freePort } from "../../helpers/programs/programs.ts";
import { tookMs } from "../driver/timed-program.ts";

/** Another program that runs a command on many hosts. */
export interface CommandPeer {
  readonly name: string;
  readonly goal: number;
  /** Its command line: the hosts say the word. */
  readonly command: readonly string[];
  readonly environment: NodeJS.ProcessEnv;
  stop(): Promise<void>;
}

export interface PeerOptions {
  readonly hosts: number;
  readonly said: string;
}

/** The newest of each that this Python can install. */
const ANSIBLE = "ansible-core==2.19.14";
const SALT = "salt==3008.4";
const VENV = join(homedir(), ".cache/odp/bench-peers");
const MINIONS_DEADLINE_MS = 900_000;

/** pdsh over ssh. `undefined`, with a printed reason, if it cannot be installed. */
export function pdsh({ hosts, said }: PeerOptions): Promise<CommandPeer | undefined> {
  return measured("pdsh", async () => {
    await run("sh", "-c", "command -v pdsh || apt-get install -y -qq pdsh");
    const reached = await SshHosts.start(hosts);
    return {
      name: "pdsh over ssh",
      goal: 20,
      command: ["pdsh", "-R", "ssh", "-f", `${hosts}`, "-w", reached.names.join(","), `echo ${said}`],
      environment: { ...process.env, PDSH_SSH_ARGS: `-F ${reached.settings} -a -x %h` },
      stop: () => reached.stop(),
    };
  });
}

/** ansible over ssh, with its own way of keeping connections open. */
export function ansible({ hosts, said }: PeerOptions): Promise<CommandPeer | undefined> {
  return measured("ansible", async () => {
    await installed(ANSIBLE);
    const reached = await SshHosts.start(hosts);
    const inventory = join(reached.folder, "inventory");
    const common = `ansible_ssh_common_args="-F ${reached.settings}" ansible_python_interpreter=/usr/bin/python3`;
    await writeFile(inventory, reached.names.map((name) => `${name} ${common}\n`).join(""));
    return {
      name: "ansible over ssh",
      goal: 50,
      command: [join(VENV, "bin/ansible"), "all", "-i", inventory, "-f", `${hosts}`, "-a", `echo ${said}`],
      environment: { ...process.env, ANSIBLE_HOME: join(reached.folder, "ansible"), LC_ALL: "C.UTF-8" },
      stop: () => reached.stop(),
    };
  });
}

/** A Salt master with minions as processes. */
export function salt({ hosts, said }: PeerOptions): Promise<CommandPeer | undefined> {
  return measured("Salt", async () => {
    await installed(SALT);
    const folder = await mkdtemp(join(tmpdir(), "odp-bench-salt-"));
    const children: ReturnType<typeof spawn>[] = [];
    const begin = (program: string, at: string): void => {
      children.push(spawn(join(VENV, "bin", program), ["-c", at], { stdio: "ignore", detached: true }));
    };
    const stop = async (): Promise<void> => {
      for (const { pid } of children) if (pid !== undefined) process.kill(-pid, "SIGKILL");
      await rm(folder, { recursive: true, force: true, maxRetries: 10 });
    };
    try {
      const [publish_port, ret_port] = [await freePort(), await freePort()];
      const ports = { interface: "127.0.0.1", publish_port, ret_port, auto_accept: true };
      const master = await saltFolder(join(folder, "master"), "master", ports);
      begin("salt-master", master);
      const names = Array.from({ length: hosts }, (_, at) => `host-${at}`);
      for (const id of names) {
        const settings = { id, master: "127.0.0.1", publish_port, master_port: ret_port, random_startup_delay: 0 };
        begin("salt-minion", await saltFolder(join(folder, id), "minion", settings));
      }
      const program = [join(VENV, "bin/salt"), "-c", master];
      const environment = { ...process.env };
      await eventually("all minions answer", MINIONS_DEADLINE_MS, async () => {
        const ping = [...program, "--out=txt", "-t", "60", "*", "test.ping"];
        const answer = await tookMs(ping, { environment }).catch(() => undefined);
        return (answer?.output.match(/True/g) ?? []).length === hosts || undefined;
      });
      const command = [...program, "--out=txt", "*", "cmd.run", `echo ${said}`];
      return { name: "Salt with minions", goal: 20, command, environment, stop };
    } catch (error) {
      await stop();
      throw error;
    }
  });
}

async function saltFolder(at: string, name: string, settings: object): Promise<string> {
  await mkdir(at, { recursive: true });
  await writeFile(join(at, name), JSON.stringify({ root_dir: at, ...settings }));
  return at;
}

async function measured(name: string, start: () => Promise<CommandPeer>): Promise<CommandPeer | undefined> {
  try {
    return await start();
  } catch (error) {
    console.log(`  ${name} is not measured: ${errorText(error)}`);
    return undefined;
  }
}

async function installed(requirement: string): Promise<void> {
  await run("python3", "-m", "venv", VENV);
  await run(join(VENV, "bin/pip"), "install", "-q", requirement);
}

async function run(...command: readonly string[]): Promise<void> {
  await tookMs(command, { environment: process.env });
}

/** Names of one SSH server, each of which is a host of its own for a client. */
class SshHosts {
  readonly folder: string;
  readonly names: readonly string[];
  readonly #sshd: Sshd;

  private constructor(folder: string, names: readonly string[], sshd: Sshd) {
    this.folder = folder;
    this.names = names;
    this.#sshd = sshd;
  }

  static async start(hosts: number): Promise<SshHosts> {
    const sshd = await startSshd();
    if (sshd === undefined) throw new Error("there is no OpenSSH server");
    const folder = await mkdtemp(join(tmpdir(), "odp-bench-ssh-"));
    const names = Array.from({ length: hosts }, (_, at) => `host-${at}`);
    const reached = new SshHosts(folder, names, sshd);
    const key = join(folder, "key");
    await writeFile(key, sshd.privateKey, { mode: 0o600 });
    await writeFile(
      reached.settings,
      `Host *\n  HostName 127.0.0.1\n  Port ${sshd.port}\n  User ${sshd.username}\n  IdentityFile ${key}\n` +
        `  StrictHostKeyChecking no\n  UserKnownHostsFile ${join(folder, "known_hosts")}\n  LogLevel ERROR\n`,
    );
    return reached;
  }

  /** The file of settings of the ssh client. */
  get settings(): string {
    return join(this.folder, "ssh_config");
  }

  async stop(): Promise<void> {
    await this.#sshd[Symbol.asyncDispose]();
    await rm(this.folder, { recursive: true, force: true, maxRetries: 10 });
  }
}
