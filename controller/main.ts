import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";
import { multistream, pino, type Logger } from "pino";
import { AppError, errorText, isAppError } from "../common/errors.ts";
import { HTTP_BACKLOG_CONNECTIONS, SHUTDOWN_DEADLINE_MS, START_AGAIN_MS, START_PATIENCE_MS } from "../common/limits.ts";
import { REGEXP_V8_FLAGS } from "../common/regex/pattern.ts";
import { wait, type Clock, type Random } from "../common/time.ts";
import { assemble, type Assembly } from "./assembly.ts";
import { systemPrincipal } from "./areas/permissions/index.ts";
import { readSettings, type Settings } from "./config.ts";
import { Demonstration } from "./demo.ts";
import { LocalAgent } from "./local-agent.ts";
import { LogFile } from "./log-file.ts";
import type { Runtime } from "./runtime.ts";
import { openSecretKey } from "./secrets/index.ts";
import type { Engine } from "./store/engine.ts";
import { terminalLog } from "./terminal.ts";

const VERSION = "0.1.0";
const RANDOM_POOL_BYTES = 4_096;

const clock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  after(delayMs, callback) {
    const timer = setTimeout(callback, delayMs);
    timer.unref();
    return () => clearTimeout(timer);
  },
};
const random: Random = { next: () => Math.random(), bytes: pooledBytes() };

for (const flag of REGEXP_V8_FLAGS) setFlagsFromString(flag);

try {
  await run(readSettings(process.env));
} catch (error) {
  console.error(`odp cannot start: ${errorText(error)}`);
  if (!(error instanceof AppError)) console.error(error);
  process.exit(1);
}

async function run(settings: Settings): Promise<void> {
  const logFile = new LogFile(join(settings.dataDir, "log", "controller.log"));
  const runtime: Runtime = { clock, random, log: openLog(settings, logFile) };
  const secrets = await openSecretKey({ file: settings.secretKeyFile, create: settings.store === "embedded" });
  const engine = await openEngine(settings, runtime);
  let agentPort = settings.agentPort;
  const controllerId = randomBytes(8).toString("hex");
  const { publicNames, dataDir } = settings;
  const assembly = await assemble({
    engine,
    runtime,
    secrets,
    controllerId,
    publicNames,
    dataDir,
    version: VERSION,
    agentPort: () => agentPort,
  });
  const password = await firstTenant(assembly, settings, runtime);
  const http = await assembly.http();
  agentPort = await assembly.agents.listen(settings.host, settings.agentPort);
  const url = await http.listen({ host: settings.host, port: settings.port, backlog: HTTP_BACKLOG_CONNECTIONS });
  await assembly.join(url);
  announce(settings, url, password);
  const localAgent = settings.localAgent ? startLocalAgent(assembly, { settings, runtime, url }) : undefined;
  const demonstration = settings.demo
    ? new Demonstration({ assembly, settings, runtime, host: hostname(), logPath: logFile.path })
    : undefined;
  void demonstration?.run((line) => console.log(line));

  endOn(["SIGTERM", "SIGINT"], runtime.log, async () => {
    demonstration?.stop();
    await localAgent?.stop();
    await http.close();
    await assembly.agents.close();
    await assembly.close();
    await engine.close();
  });
}

/** Unpredictable bytes, fetched from the system many at a time: every request wants some. */
function pooledBytes(): Random["bytes"] {
  let pool = Buffer.alloc(0);
  return (count) => {
    if (count > RANDOM_POOL_BYTES / 8) return randomBytes(count);
    if (pool.length < count) pool = randomBytes(RANDOM_POOL_BYTES);
    const bytes = Uint8Array.from(pool.subarray(0, count));
    pool = pool.subarray(count);
    return bytes;
  };
}

function openLog(settings: Settings, file: LogFile): Logger {
  // The terminal is for people: what they are told there, and what goes wrong. The file has everything.
  const terminal = terminalLog(process.stderr);
  return pino(
    { level: settings.logLevel },
    multistream([
      { stream: file, level: settings.logLevel },
      { stream: terminal, level: "warn" },
    ]),
  );
}

/** Drivers of an engine that is not used are never loaded. */
async function openEngine(settings: Settings, runtime: Runtime): Promise<Engine> {
  if (settings.store === "embedded") {
    const { openEmbeddedEngine } = await import("./store/embedded/index.ts");
    return openEmbeddedEngine({ dir: join(settings.dataDir, "store"), runtime });
  }
  const { openClusterEngine } = await import("./store/cluster/index.ts");
  const { etcdEndpoints, cassandraContactPoints, cassandraDatacenter, clusterPrefix: prefix } = settings;
  return openClusterEngine({ etcdEndpoints, cassandraContactPoints, cassandraDatacenter, prefix, runtime });
}

/** Answers the administrator's password when one was generated. */
async function firstTenant(
  { tenants, users, repair, start }: Assembly,
  settings: Settings,
  runtime: Runtime,
): Promise<string | undefined> {
  const { tenant, ospace, adminUser, adminPassword, cassandraReplicationFactor } = settings;
  const wanted = {
    name: tenant,
    ospace,
    ...(cassandraReplicationFactor && { replicationFactor: cassandraReplicationFactor }),
  };
  await patiently(runtime, () => tenants.ensureTenant(wanted));
  const given = adminPassword === undefined ? {} : { password: adminPassword };
  const administrator = await users.ensureAdministrator({ tenant, username: adminUser, ...given });
  for (const { name } of await tenants.list()) await patiently(runtime, () => repair(name));
  start();
  return administrator.generatedPassword;
}

/** A controller may start while a part of its stores is away: what is safe to repeat is repeated for a while. */
async function patiently<T>({ clock, log }: Runtime, step: () => Promise<T>): Promise<T> {
  const startMs = clock.monotonicMs();
  for (;;) {
    try {
      return await step();
    } catch (error) {
      if (
        !isAppError(error, "unavailable", "unknown_outcome", "deadline") ||
        clock.monotonicMs() - startMs > START_PATIENCE_MS
      )
        throw error;
      log.warn({ reason: errorText(error) }, "the start waits for the stores");
      await wait(clock, START_AGAIN_MS);
    }
  }
}

function announce(settings: Settings, url: string, password: string | undefined): void {
  const { tenant, adminUser, adminPassword } = settings;
  const shown = password ?? (adminPassword === undefined ? "as printed at the first start" : "as set");
  console.log(
    `odp is ready     ${url}\n  tenant         ${tenant}\n  administrator  ${adminUser}\n  password       ${shown}`,
  );
  console.log(`  ready after    ${(performance.now() / 1_000).toFixed(2)} s\n`);
}

interface LocalAgentStart {
  readonly settings: Settings;
  readonly runtime: Runtime;
  readonly url: string;
}

function startLocalAgent({ hosts, tenants }: Assembly, { settings, runtime, url }: LocalAgentStart): LocalAgent {
  const host = hostname();
  return new LocalAgent({
    runtime,
    url,
    host,
    file: fileURLToPath(new URL("agent.js", import.meta.url)),
    dir: join(settings.dataDir, "agent"),
    environment: process.env,
    token: async () => {
      const principal = systemPrincipal(settings.tenant, await tenants.ospaceOf(settings.tenant), "");
      return (await hosts.createToken(principal, { host })).token;
    },
  });
}

function endOn(signals: readonly NodeJS.Signals[], log: Logger, close: () => Promise<void>): void {
  let ending = false;
  const end = async (): Promise<void> => {
    if (ending) return;
    ending = true;
    clock.after(SHUTDOWN_DEADLINE_MS, () => process.exit(1));
    await close().catch((error: unknown) => log.error({ err: error }, "the controller did not end in good order"));
    process.exit();
  };
  for (const signal of signals) process.on(signal, () => void end());
}
