import { readFileSync } from "node:fs";
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { cassandraSeesAll, LOCAL_DATACENTER } from "./cassandra.ts";
import { answersCql } from "./cql.ts";
import { isHealthy, leadsEtcd } from "./etcd.ts";
import { defaultCacheDir, installCassandra, installEtcd, type Progress } from "./install.ts";
import { memberIsUp, planMembers, startMember, type Member, type ClusterSize } from "./plan.ts";
import { isAlive, pauseDaemon, resumeDaemon, stopDaemon, type Daemon } from "./process.ts";

const STATE_FILE = "cluster.json";
const ATTEMPTS = 3;

/** The settings by which a controller finds a cluster. */
export interface ClusterSettings {
  readonly etcdEndpoints: readonly string[];
  /** Each is `host:port`. */
  readonly cassandraContactPoints: readonly string[];
  readonly cassandraDatacenter: string;
}

export interface LocalClusterOptions {
  /** Folder of the data, the logs and the state file. */
  readonly dir: string;
  /** Folder of downloads; default: `defaultCacheDir()`. */
  readonly cacheDir?: string;
  /** Number of etcd members and of Cassandra nodes. Default 1: one of each. More make a ring of that many of each. */
  readonly nodes?: ClusterSize;
  readonly heapMiB?: number;
  /**
   * True for a single pair that lives for one run and is never restarted. It takes about half the processor time, and
   * its answered writes may not be on disk.
   */
  readonly disposable?: boolean;
  readonly progress?: Progress;
}

interface Running {
  readonly member: Member;
  readonly daemon: Daemon;
}

interface ClusterState {
  readonly settings: ClusterSettings;
  readonly running: readonly Running[];
}

/** Starts the planned members. When it resolves, every member answers. If one fails, the others are stopped. */
export async function startLocalCluster(options: LocalClusterOptions): Promise<LocalCluster> {
  const progress = options.progress ?? (() => undefined);
  const cacheDir = options.cacheDir ?? defaultCacheDir();
  const nodes = options.nodes ?? 1;
  await mkdir(options.dir, { recursive: true, mode: 0o700 });
  const [etcdProgram, cassandraJars] = await Promise.all([
    installEtcd(cacheDir, progress),
    installCassandra(cacheDir, progress),
  ]);
  for (let attempt = 1; ; attempt++) {
    const members = await planMembers({
      dir: options.dir,
      nodes,
      etcdProgram,
      cassandraJars,
      heapMiB: options.heapMiB,
      disposable: options.disposable,
    });
    progress(`Starting ${members.map((member) => member.name).join(", ")} …`);
    const cluster = new LocalCluster(options.dir, { settings: settingsOf(members), running: await launch(members) });
    try {
      // Saved before the members serve: if this process stops in between, they can still be found.
      await cluster.save();
      await cluster.whole(progress);
      return cluster;
    } catch (error) {
      await cluster.stop({ now: true });
      // A port may have been taken since it was chosen. The ports of a ring are fixed, so a retry does not help there.
      if (nodes !== 1 || attempt === ATTEMPTS) throw error;
    }
  }
}

/** The cluster whose state is in `dir`; `undefined` if none was started there, or if it was stopped. */
export async function findLocalCluster(dir: string): Promise<LocalCluster | undefined> {
  const text = await readFile(join(dir, STATE_FILE), "utf8").catch(() => undefined);
  return text === undefined ? undefined : new LocalCluster(dir, JSON.parse(text) as ClusterState);
}

/** The processes of the cluster in `dir`; empty if there is none. Synchronous, for the exit of a process. */
export function daemonsIn(dir: string): readonly Daemon[] {
  try {
    const state = JSON.parse(readFileSync(join(dir, STATE_FILE), "utf8")) as ClusterState;
    return state.running.map(({ daemon }) => daemon);
  } catch {
    return [];
  }
}

/**
 * A cluster on loopback. Its members can be killed, paused and restarted by name, such as `etcd-1` or `cassandra-3`.
 */
export class LocalCluster {
  readonly settings: ClusterSettings;
  readonly #dir: string;
  #running: readonly Running[];
  #saving: Promise<void> = Promise.resolve();

  constructor(dir: string, state: ClusterState) {
    this.#dir = dir;
    this.settings = state.settings;
    this.#running = state.running;
  }

  get members(): readonly Member[] {
    return this.#running.map(({ member }) => member);
  }

  get daemons(): readonly Daemon[] {
    return this.#running.map(({ daemon }) => daemon);
  }

  /** The processes of the cluster that are running. */
  async alive(): Promise<readonly Daemon[]> {
    const alive = await Promise.all(this.daemons.map(isAlive));
    return this.daemons.filter((_, index) => alive[index]);
  }

  /** Kills a member at once, like `kill -9`. */
  async kill(name: string): Promise<void> {
    await stopDaemon(this.#get(name).daemon, { now: true });
  }

  /**
   * Restarts an ended member in its folder and on its ports. When it resolves, the member serves, but may still have to
   * catch up.
   */
  async restart(name: string): Promise<void> {
    const { member, daemon } = this.#get(name);
    if (await isAlive(daemon)) throw new Error(`${name} runs.`);
    const started = { member, daemon: await startMember(member) };
    this.#running = this.#running.map((running) => (running.member.name === name ? started : running));
    await this.save();
    await memberIsUp(member, started.daemon);
  }

  /** True if the member serves clients now. */
  async serves(name: string): Promise<boolean> {
    const { member } = this.#get(name);
    return member.kind === "etcd" ? isHealthy(member) : answersCql(member.address, member.ports.native);
  }

  /** Pauses a member (SIGSTOP): its connections stay open but do not answer. */
  async pause(name: string): Promise<void> {
    await pauseDaemon(this.#get(name).daemon);
  }

  async resume(name: string): Promise<void> {
    await resumeDaemon(this.#get(name).daemon);
  }

  /** Waits until every member serves and reaches all others. */
  async whole(progress: Progress = () => undefined): Promise<void> {
    const began = performance.now();
    await Promise.all(
      this.#running.map(async ({ member, daemon }) => {
        await memberIsUp(member, daemon);
        progress(`${member.name} answers after ${((performance.now() - began) / 1_000).toFixed(1)} s.`);
        // A single node has too few replicas for this query.
        if (member.kind === "cassandra" && member.ring.length > 1) await cassandraSeesAll(member, daemon);
      }),
    );
  }

  /** The name of the present leader of etcd; `undefined` if there is none. */
  async etcdLeader(): Promise<string | undefined> {
    for (const member of this.members) if (member.kind === "etcd" && (await leadsEtcd(member))) return member.name;
    return undefined;
  }

  /** Stops all members; with `now`, without letting them finish their work. Idempotent. */
  async stop(options: { readonly now?: boolean } = {}): Promise<void> {
    await Promise.all(this.daemons.map((daemon) => stopDaemon(daemon, { now: options.now })));
    await rm(join(this.#dir, STATE_FILE), { force: true });
  }

  /** Saves the state, so that another process finds the cluster by its folder. */
  save(): Promise<void> {
    this.#saving = this.#saving.then(() => this.#write());
    return this.#saving;
  }

  async #write(): Promise<void> {
    const file = join(this.#dir, STATE_FILE);
    const state: ClusterState = { settings: this.settings, running: this.#running };
    await writeFile(`${file}.new`, JSON.stringify(state, undefined, 2));
    await rename(`${file}.new`, file);
  }

  #get(name: string): Running {
    const found = this.#running.find(({ member }) => member.name === name);
    if (found === undefined)
      throw new Error(`There is no ${name}: ${this.members.map((member) => member.name).join(", ")}.`);
    return found;
  }
}

/** Lines for a shell or a settings file. */
export function settingsLines(settings: ClusterSettings): string[] {
  return [
    "ODP_STORE=cluster",
    `ODP_ETCD_ENDPOINTS=${settings.etcdEndpoints.join(",")}`,
    `ODP_CASSANDRA_CONTACT_POINTS=${settings.cassandraContactPoints.join(",")}`,
    `ODP_CASSANDRA_DATACENTER=${settings.cassandraDatacenter}`,
  ];
}

/** Starts all members or none. */
async function launch(members: readonly Member[]): Promise<readonly Running[]> {
  const outcomes = await Promise.allSettled(
    members.map(async (member) => ({ member, daemon: await startMember(member) })),
  );
  const running = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
  const failure = outcomes.find((outcome) => outcome.status === "rejected");
  if (failure === undefined) return running;
  for (const { daemon } of running) await stopDaemon(daemon, { now: true });
  throw failure.reason;
}

function settingsOf(members: readonly Member[]): ClusterSettings {
  return {
    etcdEndpoints: members.flatMap((member) =>
      member.kind === "etcd" ? [`http://127.0.0.1:${member.ports.client}`] : [],
    ),
    cassandraContactPoints: members.flatMap((member) =>
      member.kind === "cassandra" ? [`${member.address}:${member.ports.native}`] : [],
    ),
    cassandraDatacenter: LOCAL_DATACENTER,
  };
}
