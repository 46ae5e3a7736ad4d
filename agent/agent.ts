import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { AppError, errorText, isAppError } from "../common/errors.ts";
import { wait, type Clock, type Random } from "../common/time.ts";
import type { AgentConfig } from "./config.ts";
import { Backoff } from "./session/backoff.ts";
import { enrol, forgetPending } from "./identity/enrol.ts";
import { createExec, endLeftovers } from "./commands/exec.ts";
import { FactsReader } from "./facts.ts";
import { nodeFiles } from "./disk/files.ts";
import { grpcTransport } from "./session/grpc-transport.ts";
import { lifetimeOf, loadIdentity, storeIdentity, type Identity } from "./identity/identity.ts";
import { lockFolder } from "./disk/lock.ts";
import type { Log } from "./log.ts";
import { work } from "./work.ts";

/** The environment of the program, passed by `main.ts`. */
export interface AgentWorld {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  /** Environment variables that commands inherit. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly version: string;
}

/** Runs the agent until the signal fires. When the promise resolves, all results are on disk. */
export async function runAgent(config: AgentConfig, world: AgentWorld, signal: AbortSignal): Promise<void> {
  const { clock, log } = world;
  await mkdir(config.folder, { recursive: true, mode: 0o700 });
  lockFolder(config.folder);
  const identity = await whoAmI(config, world, signal);
  if (!identity) return;
  const running = join(config.folder, "running");
  const leftovers = endLeftovers(running);
  if (leftovers > 0) log("warn", "ended what a former agent left running", { count: leftovers });
  const exec = createExec({ clock, folder: running, environment: world.environment });
  const facts = new FactsReader(identity.host, config.folder);
  const { folder, outboxMaxBytes, isTunnelOpen } = config;
  const transport = grpcTransport(clock);
  await work(
    { ...world, identity, folder, files: nodeFiles, outboxMaxBytes, isTunnelOpen, transport, exec, facts },
    signal,
  );
}

/**
 * The stored identity of this host. Without one, or if it has expired and a token is set, the host enrols. Undefined
 * when the signal fires first.
 */
async function whoAmI(config: AgentConfig, world: AgentWorld, signal: AbortSignal): Promise<Identity | undefined> {
  const path = join(config.folder, "identity.json");
  const known = await loadIdentity(path);
  if (known && (lifetimeOf(known).endMs > world.clock.nowMs() || !config.token)) return known;
  if (known) world.log("warn", "the certificate has expired, enrolling again");
  const { controller, token } = config;
  if (!controller || !token) {
    throw new AppError(
      "invalid",
      "This host has not enrolled: --controller and --token are needed (or ODP_AGENT_CONTROLLER and ODP_AGENT_TOKEN).",
    );
  }
  const pendingPath = join(config.folder, "enrolling.json");
  const backoff = new Backoff(world.random);
  while (!signal.aborted) {
    try {
      const identity = await enrol({ controller, token, name: config.name, pendingPath, signal });
      await storeIdentity(path, identity);
      await forgetPending(pendingPath);
      world.log("info", "enrolled", {
        host: identity.host,
        tenant: identity.tenant,
        controllers: identity.controllers,
      });
      return identity;
    } catch (error) {
      if (!isAppError(error, "unavailable", "limited")) throw error;
      if (!signal.aborted) world.log("warn", "not enrolled yet", { error: errorText(error) });
      await wait(world.clock, backoff.nextPauseMs(), signal);
    }
  }
  return undefined;
}
