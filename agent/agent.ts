import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { AppError, errorText, isAppError } from "../common/errors.ts";
import { POLICY_RUN_MAX_MS, SESSION_BACKOFF_MAX_MS, SESSION_BACKOFF_MIN_MS, SHUTDOWN_DEADLINE_MS } from "../common/limits.ts";
import { wait, type Clock, type Random } from "../common/time.ts";
import type { Depot, DesiredState } from "../proto/gen/agent/v1/agent.ts";
import { Commands } from "./commands.ts";
import type { AgentConfig } from "./config.ts";
import { enrol, forgetPending } from "./enrol.ts";
import { createExec, endLeftovers, type Exec } from "./exec.ts";
import { FactsReader } from "./facts.ts";
import { createHost, type Depots } from "./host.ts";
import { lifetimeOf, loadIdentity, storeIdentity, type Identity } from "./identity.ts";
import { Journal } from "./journal.ts";
import { lockFolder } from "./lock.ts";
import { Link } from "./link.ts";
import type { Log } from "./log.ts";
import { Outbox } from "./outbox.ts";
import { commandPlugins, ContentCache, DepotFolders, POLICY_PLUGINS } from "./plugins/index.ts";
import { StateFile } from "./state.ts";
import { Supervisor } from "./supervisor.ts";

/** The world outside, given by `main.ts`. */
export interface AgentWorld {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** What commands inherit. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly version: string;
}

/** How long the end waits for the controllers to take the last entries; what they do not take they get after the next start. */
const FLUSH_MS = 2_000;

/** Runs until the signal fires; everything that happened is then on disk. */
export async function runAgent(config: AgentConfig, world: AgentWorld, signal: AbortSignal): Promise<void> {
  const { clock, random, log } = world;
  await mkdir(config.folder, { recursive: true, mode: 0o700 });
  lockFolder(config.folder);
  const identityPath = join(config.folder, "identity.json");
  const identity = await whoAmI(config, world, signal);
  if (!identity) return;
  const outbox = await openOutbox(config, world);
  const running = join(config.folder, "running");
  const leftovers = endLeftovers(running);
  if (leftovers > 0) log("warn", "ended what a former agent left running", { count: leftovers });
  const exec = createExec({ clock, folder: running, environment: world.environment });
  const journal = new Journal(outbox, clock);
  const folders: DepotFolders = new DepotFolders(
    join(config.folder, "depots"),
    new ContentCache(join(config.folder, "cache"), (digest, offset, stop) => link.fetch(digest, offset, stop)),
  );
  const host = createHost({ log, clock, random, exec, outbox, depots: depotsOf(folders, exec) });
  const supervisor = new Supervisor({ host, plugins: POLICY_PLUGINS, folder: join(config.folder, "policies") });
  const commands: Commands = new Commands({
    host,
    journal,
    plugins: commandPlugins(folders),
    tell: (value) => link.send({ $case: "command", value }),
  });
  const state = new DesiredWork(new StateFile(join(config.folder, "desired.bin")), supervisor, log);
  const facts = new FactsReader(identity.host, config.folder);
  const link: Link = new Link({
    identity,
    identityPath,
    outbox,
    journal,
    clock,
    random,
    log,
    version: world.version,
    facts: () => facts.read(),
    values: async () => ({ ...(await facts.values()), ...failuresOf(supervisor) }),
    desiredRevision: () => state.revision,
    handler: {
      desired: (wanted) => state.take(wanted),
      command: (command) => commands.take(command),
      cancel: (cancel) => commands.cancel(cancel),
    },
  });
  const interrupted = await journal.finishInterrupted();
  if (interrupted > 0) log("warn", "commands had been interrupted", { count: interrupted });
  await state.resume();
  const linkEnd = new AbortController();
  const linked = link.run(linkEnd.signal);
  await aborted(signal);
  log("info", "ending");
  await within(clock, SHUTDOWN_DEADLINE_MS, Promise.all([supervisor.stop(), commands.stop()]));
  if (link.connected) await within(clock, FLUSH_MS, allTaken(outbox));
  linkEnd.abort();
  await linked;
  await outbox.close();
  log("info", "ended");
}

/** What is wanted, on disk before it is worked by. */
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
      // It will be sent again, because the revision that is told stays the old one.
      this.#log("error", "desired state not kept", { revision: state.revision, error: errorText(error) });
    }
    this.#supervisor.apply(state);
  }
}

async function openOutbox(config: AgentConfig, { clock, random, log }: AgentWorld): Promise<Outbox> {
  const outbox = await Outbox.open({ folder: join(config.folder, "outbox"), clock, random, maxBytes: config.outboxMaxBytes });
  if (outbox.tornBytes > 0) log("warn", "unfinished write cut off the outbox", { bytes: outbox.tornBytes });
  if (outbox.damagedFrames > 0) log("error", "the outbox was damaged", { frames: outbox.damagedFrames });
  return outbox;
}

/** Undefined when the signal fired first. */
async function whoAmI(config: AgentConfig, world: AgentWorld, signal: AbortSignal): Promise<Identity | undefined> {
  const path = join(config.folder, "identity.json");
  const known = await loadIdentity(path);
  if (known && (lifetimeOf(known).endMs > world.clock.nowMs() || !config.token)) return known;
  if (known) world.log("warn", "the certificate has expired, enrolling again");
  const { controller, token } = config;
  if (!controller || !token) {
    throw new AppError("invalid", "This host has not enrolled: --controller and --token are needed (or ODP_AGENT_CONTROLLER and ODP_AGENT_TOKEN).");
  }
  const pendingPath = join(config.folder, "enrolling.json");
  for (let failures = 0; !signal.aborted; failures++) {
    try {
      const identity = await enrol({ controller, token, name: config.name, pendingPath, signal });
      await storeIdentity(path, identity);
      await forgetPending(pendingPath);
      world.log("info", "enrolled", { host: identity.host, tenant: identity.tenant, controllers: identity.controllers });
      return identity;
    } catch (error) {
      if (!isAppError(error, "unavailable", "limited")) throw error;
      if (!signal.aborted) world.log("warn", "not enrolled yet", { error: errorText(error) });
      const pauseMs = Math.min(SESSION_BACKOFF_MAX_MS, SESSION_BACKOFF_MIN_MS * 2 ** Math.min(failures, 16));
      await wait(world.clock, pauseMs * (0.5 + world.random.next() / 2), signal);
    }
  }
  return undefined;
}

function depotsOf(folders: DepotFolders, exec: Exec): Depots {
  return {
    folder: (name) => folders.folder(name),
    ensure: (depot, signal) => folders.ensure(depot, (folder) => runDepotCommand({ depot, folder, exec, signal }), signal),
  };
}

async function runDepotCommand(work: { depot: Depot; folder: string; exec: Exec; signal: AbortSignal }): Promise<void> {
  const { depot, folder, exec, signal } = work;
  if (depot.command === "") return;
  const { code, message } = await exec({ line: depot.command, cwd: folder, signal, timeoutMs: POLICY_RUN_MAX_MS });
  if (code !== 0) throw new AppError("unavailable", `The command of the depot ${depot.name} ${message}.`);
}

function failuresOf(supervisor: Supervisor): Record<string, string> {
  return supervisor.failures.size === 0 ? {} : { policy_failures: JSON.stringify(Object.fromEntries(supervisor.failures)) };
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
