import { join } from "node:path";
import { AppError, errorText } from "../common/errors.ts";
import type { Files } from "../common/files.ts";
import {
  POLICY_RUN_MAX_MS,
  POLICY_STATE_MAX_CHARACTERS,
  POLICY_STATES_MAX,
  SHUTDOWN_DEADLINE_MS,
} from "../common/limits.ts";
import { beginningOf } from "../common/text/cut.ts";
import { wait, type Clock, type Random } from "../common/time.ts";
import type { Depot, DesiredState, Facts } from "../proto/gen/agent/v1/agent.ts";
import { Commands } from "./commands/commands.ts";
import type { Exec } from "./commands/exec.ts";
import { createHost, type Depots } from "./policies/host.ts";
import type { Identity } from "./identity/identity.ts";
import { Journal } from "./commands/journal.ts";
import { Link } from "./session/link.ts";
import type { Log } from "./log.ts";
import { Outbox } from "./outbox/outbox.ts";
import { OutboxCopy } from "./outbox/copy.ts";
import { commandPlugins, ContentCache, DepotFolders, POLICY_PLUGINS } from "./plugins/index.ts";
import { StateFile } from "./disk/state.ts";
import { Supervisor } from "./policies/supervisor.ts";
import type { Transport } from "./session/transport.ts";
import type { UsageReader } from "./usage.ts";
import { Tunnels } from "./tunnels/tunnels.ts";

/** The environment of an enrolled agent. `test/sim` passes a simulated one. */
export interface WorkWorld {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly version: string;
  readonly identity: Identity;
  /** The folder of this agent, already locked. */
  readonly folder: string;
  /**
   * The disk of the outbox, the identity and the desired state. Depots and followed logs are always on the real disk.
   */
  readonly files: Files;
  readonly outboxMaxBytes: number;
  readonly transport: Transport;
  readonly exec: Exec;
  /** True if controllers may open a tunnel to this address and port. */
  readonly isTunnelOpen: (address: string, port: number) => boolean;
  /** Usage of daemons, by policy and leader of the process group, and of external agents. Absent: it is not read. */
  readonly usage?: Pick<UsageReader, "read">;
  readonly facts: { read(): Promise<Facts>; values(): Promise<Record<string, string>> };
}

/**
 * Time at the end for the controllers to acknowledge the last entries. Entries that are not acknowledged are sent after
 * the next start.
 */
const FLUSH_MS = 2_000;

/** Works for the controllers until the signal fires. When the promise resolves, all results are on disk. */
export async function work(world: WorkWorld, signal: AbortSignal): Promise<void> {
  const { clock, random, log, exec, folder, files, facts, identity, transport, version } = world;
  const outbox = await openOutbox(world);
  const copy = new OutboxCopy({ path: join(folder, "outbox-marks.json"), files, outbox, clock, log });
  await copy.restore();
  const journal = new Journal(outbox, clock);
  const folders: DepotFolders = new DepotFolders(
    join(folder, "depots"),
    new ContentCache(join(folder, "cache"), (digest, offset, stop) => link.fetch(digest, offset, stop)),
    random,
  );
  const host = createHost({ log, clock, random, exec, outbox, depots: depotsOf(folders, exec) });
  const supervisor = new Supervisor({ host, plugins: POLICY_PLUGINS, folder: join(folder, "policies"), files });
  const commands: Commands = new Commands({
    host,
    journal,
    plugins: commandPlugins(folders),
    tell: (value) => link.send({ $case: "command", value }),
  });
  const tunnels = new Tunnels({ journal, clock, log, isOpen: world.isTunnelOpen });
  const state = new DesiredWork(new StateFile(join(folder, "desired.bin"), files), supervisor, log);
  const link: Link = new Link({
    identity,
    identityPath: join(folder, "identity.json"),
    files,
    transport,
    outbox,
    journal,
    clock,
    random,
    log,
    version,
    facts: () => facts.read(),
    values: async () => ({ ...(await facts.values()), ...statesOf(supervisor), ...usagesOf(world, supervisor) }),
    desiredRevision: () => state.revision,
    handler: {
      desired: (wanted) => state.take(wanted),
      command: (command) => commands.take(command),
      cancel: (cancel) => commands.cancel(cancel),
      openTunnel: (asked, call) => tunnels.take(asked, call),
    },
  });
  // This runs concurrently with the link. It may wait for room in a full outbox, and only entries that the link
  // delivers make room.
  const interrupted = finishInterrupted(journal, log);
  await state.resume();
  const linkEnd = new AbortController();
  const linked = link.run(linkEnd.signal);
  const copyEnd = new AbortController();
  const kept = copy.keep(copyEnd.signal);
  await aborted(signal);
  log("info", "ending");
  tunnels.stop();
  await within(clock, SHUTDOWN_DEADLINE_MS, Promise.all([supervisor.stop(), commands.stop()]));
  if (link.connected) await within(clock, FLUSH_MS, allTaken(outbox));
  copyEnd.abort();
  await kept;
  linkEnd.abort();
  await linked;
  await outbox.close();
  await interrupted;
  log("info", "ended");
}

async function finishInterrupted(journal: Journal, log: Log): Promise<void> {
  try {
    const count = await journal.finishInterrupted();
    if (count > 0) log("warn", "commands had been interrupted", { count });
  } catch (error) {
    log("warn", "results of interrupted commands not written, the next start does it", { error: errorText(error) });
  }
}

/** The desired state of this host. It is stored before it is applied. If it cannot be stored, it is applied anyway. */
class DesiredWork {
  readonly #file: StateFile;
  readonly #supervisor: Supervisor;
  readonly #log: Log;
  revision = 0;

  constructor(file: StateFile, supervisor: Supervisor, log: Log) {
    this.#file = file;
    this.#supervisor = supervisor;
    this.#log = log;
  }

  async resume(): Promise<void> {
    const state = await this.#file.load();
    if (!state) return;
    this.revision = state.revision;
    this.#supervisor.apply(state);
  }

  async take(state: DesiredState): Promise<void> {
    this.#log("info", "desired state", { revision: state.revision, policies: state.policies.length });
    try {
      await this.#file.store(state);
      this.revision = state.revision;
    } catch (error) {
      // A controller sends the desired state again at the beginning of the next session.
      this.#log("error", "desired state not kept", { revision: state.revision, error: errorText(error) });
    }
    this.#supervisor.apply(state);
  }
}

async function openOutbox({ folder, files, outboxMaxBytes, clock, random, log }: WorkWorld): Promise<Outbox> {
  const outbox = await Outbox.open({ folder: join(folder, "outbox"), files, clock, random, maxBytes: outboxMaxBytes });
  if (outbox.tornBytes > 0) log("warn", "unfinished write cut off the outbox", { bytes: outbox.tornBytes });
  if (outbox.damagedFrames > 0) log("error", "the outbox was damaged", { frames: outbox.damagedFrames });
  return outbox;
}

function depotsOf(folders: DepotFolders, exec: Exec): Depots {
  return {
    folder: (name) => folders.folder(name),
    ensure: (depot, signal) =>
      folders.ensure(depot, (folder) => runDepotCommand({ depot, folder, exec, signal }), signal),
  };
}

async function runDepotCommand(work: { depot: Depot; folder: string; exec: Exec; signal: AbortSignal }): Promise<void> {
  const { depot, folder, exec, signal } = work;
  if (depot.command === "") return;
  const { code, message } = await exec({ line: depot.command, cwd: folder, signal, timeoutMs: POLICY_RUN_MAX_MS });
  if (code !== 0) throw new AppError("unavailable", `The command of the depot ${depot.name} ${message}.`);
}

/**
 * One value for each policy and each conf, up to `POLICY_STATES_MAX` of each. The value without a name is their number;
 * its presence tells a controller that these are all states, so that it drops those of other policies.
 */
function statesOf(supervisor: Supervisor): Record<string, string> {
  return { ...listed("policy/", supervisor.states), ...listed("conf/", supervisor.confs) };
}

/** The usage of daemons and external agents as JSON. Its names are as those of `statesOf`. */
function usagesOf({ usage }: WorkWorld, { pids }: Supervisor): Record<string, string> {
  if (!usage) return {};
  const texts = [...usage.read(pids)].map(([name, value]) => [name, JSON.stringify(value)] as const);
  return listed("usage/", new Map(texts));
}

function listed(prefix: string, all: ReadonlyMap<string, string>): Record<string, string> {
  const states = [...all].slice(0, POLICY_STATES_MAX);
  return {
    [prefix]: String(states.length),
    ...Object.fromEntries(
      states.map(([name, state]) => [prefix + name, beginningOf(state, POLICY_STATE_MAX_CHARACTERS)]),
    ),
  };
}

async function allTaken(outbox: Outbox): Promise<void> {
  while (outbox.firstSequence < outbox.nextSequence) await outbox.changed(outbox.version);
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

async function within(clock: Clock, limitMs: number, work: Promise<unknown>): Promise<void> {
  const done = new AbortController();
  await Promise.race([work, wait(clock, limitMs, done.signal)]);
  done.abort();
}
