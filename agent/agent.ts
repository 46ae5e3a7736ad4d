import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { parseJoinToken } from "../common/agent/enrolment.ts";
import { AppError, errorText, isAppError } from "../common/errors.ts";
import { wait, type Clock, type Random } from "../common/time.ts";
import type { AgentConfig } from "./config.ts";
import { Backoff } from "./session/backoff.ts";
import { enrol, forgetPending, type EnrolOptions } from "./identity/enrol.ts";
import { createExec, endLeftovers } from "./commands/exec.ts";
import { FactsReader } from "./facts.ts";
import { nodeFiles } from "./disk/files.ts";
import { grpcTransport } from "./session/grpc-transport.ts";
import { lifetimeOf, loadIdentity, storeIdentity, type Identity } from "./identity/identity.ts";
import { lockFolder } from "./disk/lock.ts";
import type { Log } from "./log.ts";
import { UsageReader } from "./usage.ts";
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
  const usage = new UsageReader(clock);
  const { folder, outboxMaxBytes, isTunnelOpen } = config;
  const transport = grpcTransport(clock);
  await work(
    { ...world, identity, folder, files: nodeFiles, outboxMaxBytes, isTunnelOpen, transport, exec, facts, usage },
    signal,
  );
}

/**
 * The stored identity of this host. Without one, or if it has expired and a token is set, the host enrols. A host with
 * a valid identity tries each new token once, and keeps its identity if the token is refused. Undefined when the signal
 * fires first.
 */
async function whoAmI(config: AgentConfig, world: AgentWorld, signal: AbortSignal): Promise<Identity | undefined> {
  const path = join(config.folder, "identity.json");
  const known = await loadIdentity(path);
  const { controller, token } = config;
  const isValid = known !== undefined && lifetimeOf(known).endMs > world.clock.nowMs();
  if (known && (!token || (isValid && !controller))) return known;
  if (!controller || !token) {
    throw new AppError(
      "invalid",
      "This host has not enrolled: --controller and --token are needed (or ODP_AGENT_CONTROLLER and ODP_AGENT_TOKEN).",
    );
  }
  if (isValid && (!config.enrolsAgain || known.token === parseJoinToken(token).id)) return known;
  const wish = { controller, token, pendingPath: join(config.folder, "enrolling.json"), signal };
  const enrolling: Enrolling = {
    path,
    options: { ...wish, ...nameOf(config, isValid ? known : undefined), tenant: known?.tenant },
    world,
  };
  if (isValid) return enrolAgain(enrolling, known);
  if (known) world.log("warn", "the certificate has expired, enrolling again");
  return enrolUntilDone(enrolling, signal);
}

interface Enrolling {
  /** File of the identity. */
  readonly path: string;
  readonly options: EnrolOptions;
  readonly world: AgentWorld;
}

/** A host with a valid identity keeps its name, because its data is delivered under the new identity. */
function nameOf(
  { name, isNamed, folder }: AgentConfig,
  known: Identity | undefined,
): Pick<EnrolOptions, "name" | "isNamed"> {
  if (!known) return { name, isNamed };
  if (isNamed && name !== known.host)
    throw new AppError(
      "invalid",
      `${folder} has the data of the host ${known.host}: enrol ${name} with another folder (--dir).`,
    );
  return { name: known.host, isNamed: true };
}

async function enrolUntilDone(enrolling: Enrolling, signal: AbortSignal): Promise<Identity | undefined> {
  const { clock, log, random } = enrolling.world;
  const backoff = new Backoff(random);
  while (!signal.aborted) {
    try {
      return await enrolOnce(enrolling);
    } catch (error) {
      if (!isAppError(error, "unavailable", "limited")) throw error;
      if (!signal.aborted) log("warn", "not enrolled yet", { error: errorText(error) });
      await wait(clock, backoff.nextPauseMs(), signal);
    }
  }
  return undefined;
}

/** One attempt with a new token. A host whose enrolment is still good must not end because of a wrong token. */
async function enrolAgain(enrolling: Enrolling, known: Identity): Promise<Identity> {
  const { path, options, world } = enrolling;
  try {
    return await enrolOnce(enrolling);
  } catch (error) {
    if (!isAppError(error)) throw error;
    const isTried = !isAppError(error, "unavailable", "limited");
    const next = isTried ? "" : " The next start tries it again.";
    world.log("warn", `the join token is not taken, the former enrolment stays.${next}`, {
      host: known.host,
      error: errorText(error),
    });
    const identity = { ...known, token: parseJoinToken(options.token).id };
    if (isTried) await storeIdentity(path, identity);
    return isTried ? identity : known;
  }
}

async function enrolOnce({ path, options, world }: Enrolling): Promise<Identity> {
  const identity = await enrol(options);
  await storeIdentity(path, identity);
  await forgetPending(options.pendingPath);
  const { host, tenant, controllers } = identity;
  world.log("info", "enrolled", { host, tenant, controllers });
  return identity;
}
