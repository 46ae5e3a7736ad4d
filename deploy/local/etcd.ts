import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { freePorts, startDaemon, stopDaemon, waitUntilUp, type Daemon } from "./process.ts";

const START_DEADLINE_MS = 20_000;
const ATTEMPTS = 3;

export interface EtcdOptions {
  readonly program: string;
  /** Its data and log. */
  readonly dir: string;
  readonly ports?: EtcdPorts;
}

export interface EtcdPorts {
  readonly client: number;
  readonly peer: number;
}

export interface LocalEtcd {
  readonly daemon: Daemon;
  readonly ports: EtcdPorts;
}

/** One etcd member on 127.0.0.1, answering when this resolves. Starting again in the same folder finds the same data. */
export async function startEtcd(options: EtcdOptions): Promise<LocalEtcd> {
  await mkdir(options.dir, { recursive: true, mode: 0o700 });
  for (let attempt = 1; ; attempt++) {
    const ports = options.ports ?? (await pickPorts());
    const daemon = await startDaemon(etcdSpec(options, ports));
    try {
      await waitUntilUp(daemon, () => isHealthy(ports.client), START_DEADLINE_MS);
      return { daemon, ports };
    } catch (error) {
      await stopDaemon(daemon, { now: true });
      // A picked port may have been taken meanwhile; a given one is the caller's word.
      if (options.ports !== undefined || attempt === ATTEMPTS) throw error;
    }
  }
}

function etcdSpec(options: EtcdOptions, ports: EtcdPorts) {
  const dataDir = join(options.dir, "data");
  const client = `http://127.0.0.1:${ports.client}`;
  const peer = `http://127.0.0.1:${ports.peer}`;
  const args = [
    ["--name", "local"],
    ["--data-dir", dataDir],
    ["--listen-client-urls", client],
    ["--advertise-client-urls", client],
    ["--listen-peer-urls", peer],
    ["--initial-advertise-peer-urls", peer],
    ["--initial-cluster", `local=${peer}`],
    ["--auto-compaction-mode", "periodic"],
    ["--auto-compaction-retention", "1h"],
    ["--log-level", "warn"],
  ];
  return { name: "etcd", program: options.program, args: args.flat(), mark: dataDir, logFile: join(options.dir, "etcd.log") };
}

async function pickPorts(): Promise<EtcdPorts> {
  const [client = 0, peer = 0] = await freePorts(2);
  return { client, peer };
}

async function isHealthy(port: number): Promise<boolean> {
  try {
    const answer = await fetch(`http://127.0.0.1:${port}/health`, { signal: AbortSignal.timeout(1_000) });
    return answer.ok && (await answer.text()).includes('"true"');
  } catch {
    return false;
  }
}
