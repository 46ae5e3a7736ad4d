import { randomBytes } from "node:crypto";
import { closeSync, openSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { isatty } from "node:tty";
import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";
import { multistream, pino, type Logger } from "pino";
import { AppError, errorText, isAppError } from "../common/errors.ts";
import { SHUTDOWN_DEADLINE_MS } from "../common/limits.ts";
import { outliveOutput } from "../common/outputs.ts";
import { REGEXP_V8_FLAGS } from "../common/regex/pattern.ts";
import type { Clock, Random } from "../common/time.ts";
import { assemble, type Assembly } from "./assembly.ts";
import { systemPrincipal } from "./areas/permissions/index.ts";
import type { Tenant } from "./areas/tenants/index.ts";
import type { Administrator } from "./areas/users/index.ts";
import { listen } from "./http/connections/listen.ts";
import { exposureOf, readSettings, type Settings } from "./settings/config.ts";
import { Demonstration } from "./local/demo.ts";
import { LocalAgent } from "./local/agent.ts";
import { readManual } from "./http/manual/files.ts";
import { findLocalUser, giveFolder } from "./local/user.ts";
import { callLog, type CallLog } from "./log/calls.ts";
import { LogFile } from "./log/file.ts";
import type { Runtime } from "./runtime.ts";
import { StartRetry } from "./start-retry.ts";
import { Spawner } from "./processes/index.ts";
import { secretsOf } from "./secrets/index.ts";
import type { Engine } from "./store/engine.ts";
import { terminalLog } from "./log/terminal.ts";

const VERSION = "0.1.0";
const RANDOM_POOL_BYTES = 4_096;
const AWAKE_MS = 60_000;
/** Most objects of the start survive, so V8 would create those of later calls directly in the old heap. */
const HEAP_V8_FLAGS = ["--no-allocation-site-pretenuring"];

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

for (const flag of [...REGEXP_V8_FLAGS, ...HEAP_V8_FLAGS]) setFlagsFromString(flag);

outliveOutput(process, { isatty, closeSync, openSync });
// Timers of the clock do not keep the process alive, and during an outage of a store nothing else does.
const awake = setInterval(() => undefined, AWAKE_MS);
try {
  await commandNamed(process.argv[2])(
    readSettings(process.env, (text) => console.error(`warning: ${text}`)),
    process.argv.slice(3),
  );
} catch (error) {
  console.error(`odp cannot start: ${errorText(error)}`);
  if (!(error instanceof AppError)) console.error(error);
  process.exit(1);
}
clearInterval(awake);

type Command = (settings: Settings, words: readonly string[]) => Promise<void>;

function commandNamed(name: string | undefined): Command {
  if (name === undefined) return run;
  if (name === "check") return check;
  if (name === "reset-password") return resetPassword;
  if (name === "remove-second-factor") return removeSecondFactor;
  throw new AppError(
    "invalid",
    `There is no command ${name}. Known: check, reset-password [tenant] [user], remove-second-factor [tenant] [user]; none starts the controller.`,
  );
}

/** For a lost password; a second factor stays. */
function resetPassword(
  settings: Settings,
  [tenant = settings.tenant, user = settings.adminUser]: readonly string[],
): Promise<void> {
  return withStores(settings, async ({ users }) => {
    const password = await users.operator.resetPassword(tenant, user);
    console.log(
      `tenant    ${tenant}\nuser      ${user}\npassword  ${password}\nEvery session of this user has ended. A second factor stays.`,
    );
  });
}

/** For a second factor that is lost together with its recovery codes. */
function removeSecondFactor(
  settings: Settings,
  [tenant = settings.tenant, user = settings.adminUser]: readonly string[],
): Promise<void> {
  return withStores(settings, async ({ users }) => {
    await users.operator.resetSecondFactor(tenant, user);
    console.log(`tenant    ${tenant}\nuser      ${user}\nThe second factor is removed. The password stays as it was.`);
  });
}

/** The embedded store must not be in use; a cluster may be. */
async function withStores(settings: Settings, work: (assembly: Assembly) => Promise<void>): Promise<void> {
  const spawner = startSpawner();
  const runtime: Runtime = { clock, random, log: pino({ level: "warn" }, terminalLog(process.stderr)) };
  const patience = new StartRetry(runtime);
  const at = { runtime, patience, spawner, createKey: false, agentPort: () => 0 };
  const { engine, assembly } = await prepare(settings, at);
  try {
    await work(assembly);
  } finally {
    await assembly.close();
    await engine.close();
    await spawner.close();
  }
  process.exit();
}

/** Checks the embedded store of a stopped controller; exits with 1 if something is damaged. */
async function check(settings: Settings): Promise<void> {
  if (settings.store !== "embedded")
    throw new AppError("unsupported", "A cluster's stores are checked by etcd's and Cassandra's own tools.");
  const { checkStore } = await import("./store/embedded/index.ts");
  const { lines, faults } = await checkStore(storeFolder(settings), { clock, random });
  for (const line of lines) console.log(line);
  console.log(
    faults === 0 ? "Nothing is damaged." : `${faults} things are damaged. Restore the data folder from a backup.`,
  );
  process.exit(faults === 0 ? 0 : 1);
}

function storeFolder({ dataDir }: Settings): string {
  return join(dataDir, "store");
}

async function run(settings: Settings): Promise<void> {
  const spawner = startSpawner();
  const logFile = new LogFile(join(settings.dataDir, "log", "controller.log"), clock);
  process.on("exit", () => logFile.flush());
  const runtime: Runtime = { clock, random, log: openLog(settings, logFile) };
  let { agentPort, port } = settings;
  const patience = new StartRetry(runtime);
  const prepared = await prepare(settings, {
    runtime,
    patience,
    spawner,
    createKey: true,
    agentPort: () => agentPort,
    listening: () => ({ host: settings.host, port }),
    ...(runtime.log.isLevelEnabled("info") && { callLog: callLog(logFile, clock) }),
  });
  const { engine, assembly } = prepared;
  const exposure = exposureOf(settings);
  if (exposure !== undefined) runtime.log.warn(exposure);
  const administrator = await firstTenant(assembly, settings, patience);
  const http = await assembly.http();
  agentPort = await assembly.agents.listen(settings.host, settings.agentPort);
  const { url, port: opened } = await listen(http, settings);
  port = opened;
  await assembly.join(url);
  announce(settings, url, administrator);
  const localAgent = settings.localAgent
    ? await startLocalAgent(assembly, { settings, runtime, spawner, url })
    : undefined;
  const demonstration = settings.demo
    ? new Demonstration({ assembly, settings, runtime, host: hostname(), logPath: logFile.path })
    : undefined;
  void demonstration?.run((line) => console.log(line));

  const end = endingBy(runtime.log, async () => {
    demonstration?.stop();
    // Before any agent's connection ends: otherwise job runs would end because they lose their agent.
    await Promise.all([http.close(), assembly.runs.close()]);
    await localAgent?.stop();
    await assembly.agents.close();
    await assembly.close();
    await engine.close();
    await spawner.close();
  });
  for (const signal of ["SIGTERM", "SIGINT"] as const) process.on(signal, () => void end(0));
  void spawner.lost.then(() => {
    runtime.log.fatal("the process that starts all others has ended: the controller stops");
    return end(1);
  });
}

/** Call before a store is opened: the spawner would inherit files that the store's library opens. */
function startSpawner(): Spawner {
  return new Spawner(new URL("controller-spawner.js", import.meta.url));
}

interface Preparation {
  readonly runtime: Runtime;
  readonly patience: StartRetry;
  readonly spawner: Spawner;
  readonly createKey: boolean;
  readonly agentPort: () => number;
  readonly listening?: () => { readonly host: string; readonly port: number };
  /** See `HttpParts.callLog`. */
  readonly callLog?: CallLog;
}

interface Prepared {
  readonly engine: Engine;
  readonly assembly: Assembly;
}

/** Creates every service over its stores; nothing listens yet. */
async function prepare(
  settings: Settings,
  { runtime, patience, spawner, createKey, agentPort, listening, callLog: calls }: Preparation,
): Promise<Prepared> {
  const { secretKey } = settings;
  const secrets = await secretsOf(
    secretKey.kind === "file" && !createKey ? { ...secretKey, create: false } : secretKey,
    { processes: spawner, clock, environment: process.env },
  );
  const engine = await patience.during(() => openEngine(settings, runtime));
  // The first start creates the system store within its own deadline. Readiness waits only as long as for any answer.
  await patience.during(() => engine.system());
  await patience.during(() => engine.ready());
  const controllerId = randomBytes(8).toString("hex");
  const { publicNames, httpUrl, trustedProxies, hsts, passwordWords, metricsReaders, bodyMemoryMib } = settings;
  const { outboundNetworks, outboundPublic } = settings;
  const { dataDir, sshTrustFirstKey, licenseKeys, auditAnchorFile, openId } = settings;
  const workers = { file: new URL("controller-worker.js", import.meta.url), threads: settings.workerThreads };
  const assembly = await assemble({
    engine,
    runtime,
    secrets,
    keySource: secretKey,
    controllerId,
    publicNames,
    httpUrl,
    trustedProxies,
    hsts,
    passwordWords,
    metricsReaders,
    bodyMemoryMib,
    fileHistory: settings.fileHistory,
    targetHold: settings.targetHold,
    shownSettings: settings.shown,
    ...{ outboundNetworks, outboundPublic, dataDir },
    ...(auditAnchorFile && { auditAnchorFile }),
    sshTrustFirstKey,
    licenseKeys,
    openId,
    zone: Intl.DateTimeFormat().resolvedOptions().timeZone,
    version: VERSION,
    agentPort,
    workers,
    manual: await readManual(new URL("manual/", import.meta.url)),
    scripts: new URL("controller-script-worker.js", import.meta.url),
    ...(listening && { listening }),
    ...(calls && { callLog: calls }),
  });
  return { engine, assembly };
}

/** Random bytes, read from the system in large pieces, because every request needs some. */
function pooledBytes(): Random["bytes"] {
  let pool = Buffer.alloc(0);
  return (count) => {
    if (count > RANDOM_POOL_BYTES / 8) return randomBytes(count);
    if (pool.length < count) pool = randomBytes(RANDOM_POOL_BYTES);
    const bytes = new Uint8Array(pool.subarray(0, count));
    pool = pool.subarray(count);
    return bytes;
  };
}

function openLog(settings: Settings, file: LogFile): Logger {
  // The terminal shows messages for people and problems. The file has everything.
  const terminal = { stream: terminalLog(process.stderr), level: "warn" };
  return pino({ level: settings.logLevel }, multistream([{ stream: file, level: settings.logLevel }, terminal]));
}

/** Drivers of unused engines are never loaded. */
async function openEngine(settings: Settings, runtime: Runtime): Promise<Engine> {
  if (settings.store === "embedded") {
    const { openEmbeddedEngine } = await import("./store/embedded/index.ts");
    return openEmbeddedEngine({ dir: storeFolder(settings), runtime });
  }
  const { openClusterEngine } = await import("./store/cluster/index.ts");
  const { etcdEndpoints, cassandraContactPoints, cassandraDatacenter, clusterPrefix: prefix } = settings;
  const { etcdAccess, cassandraAccess } = settings;
  const places = { etcdEndpoints, etcdAccess, cassandraContactPoints, cassandraAccess, cassandraDatacenter };
  return openClusterEngine({ ...places, prefix, runtime });
}

async function firstTenant(
  { tenants, users, repair, start }: Assembly,
  settings: Settings,
  patience: StartRetry,
): Promise<Administrator> {
  const { tenant, ospace, adminUser, adminPassword, cassandraReplicationFactor } = settings;
  const wanted = {
    name: tenant,
    ospace,
    ...(cassandraReplicationFactor && { replicationFactor: cassandraReplicationFactor }),
  };
  await patience.during(() => tenants.ensureTenant(wanted));
  await tenants.requireStores();
  const given = adminPassword === undefined ? {} : { password: adminPassword };
  const administrator = await users.operator.ensureAdministrator({ tenant, username: adminUser, ...given });
  for (const { name } of await tenants.list()) await patience.during(() => repair(name).catch(unlessGone));
  start();
  return administrator;
}

/** Ignores that one tenant's data is missing in the store: readiness reports it, and the other tenants are served. */
function unlessGone(error: unknown): void {
  if (!isAppError(error, "unavailable") || error.details?.["reason"] !== "keyspace_gone") throw error;
}

function announce(settings: Settings, url: string, administrator: Administrator): void {
  const { tenant, adminUser } = settings;
  const shown = shownPassword(administrator, settings.adminPassword !== undefined);
  console.log(
    `odp is ready     ${url}\n  tenant         ${tenant}\n  administrator  ${adminUser}\n  password       ${shown}`,
  );
  console.log(`  ready after    ${(performance.now() / 1_000).toFixed(2)} s\n`);
}

/** A configured password applies to a new administrator only; an existing one keeps the old password. */
function shownPassword({ created, generatedPassword }: Administrator, isSet: boolean): string {
  if (created) return generatedPassword ?? "as set";
  const why = isSet ? "unchanged: ODP_ADMIN_PASSWORD is for a new administrator only" : "as printed at the first start";
  return `${why} (lost? stop the controller, then: node dist/controller.js reset-password)`;
}

interface LocalAgentStart {
  readonly settings: Settings;
  readonly runtime: Runtime;
  readonly spawner: Spawner;
  readonly url: string;
}

async function startLocalAgent(
  assembly: Assembly,
  { settings, runtime, spawner, url }: LocalAgentStart,
): Promise<LocalAgent> {
  const { hosts, tenants } = assembly;
  const host = hostname();
  const dir = join(settings.dataDir, "agent");
  const user = settings.localAgentUser === undefined ? undefined : await findLocalUser(settings.localAgentUser);
  if (user !== undefined) await giveFolder(dir, user);
  if (user === undefined || user.uid === process.getuid?.()) await warnOfSharedUser(assembly, runtime.log, host);
  return new LocalAgent({
    runtime,
    processes: spawner,
    url,
    host,
    file: fileURLToPath(new URL("agent.js", import.meta.url)),
    dir,
    logPath: join(settings.dataDir, "log", "agent.log"),
    user,
    environment: process.env,
    token: async () => {
      const principal = systemPrincipal(settings.tenant, await tenants.ospaceOf(settings.tenant), "");
      return (await hosts.tokens.create(principal, { host })).token;
    },
  });
}

/** With one tenant and host it does not matter that a local user may read the keys; with others it does. */
async function warnOfSharedUser({ hosts, tenants }: Assembly, log: Logger, host: string): Promise<void> {
  const all = await tenants.list();
  if (all.length < 2 && !(await hasOtherHosts(hosts, all, host))) return;
  log.warn(
    "the agent beside the controller runs as the controller's own user: whoever may run jobs on this host can read the keys and the stores of all tenants. " +
      "Start the controller as root with local_agent_user=<another user>, or with local_agent=0",
  );
}

async function hasOtherHosts(hosts: Assembly["hosts"], tenants: readonly Tenant[], own: string): Promise<boolean> {
  for (const { name, ospace } of tenants) {
    for await (const page of hosts.list(systemPrincipal(name, ospace, ""), {}))
      if (page.some(({ host }) => host !== own)) return true;
  }
  return false;
}

/** Returns a function that ends the process in good order with an exit code. Further calls have no effect. */
function endingBy(log: Logger, close: () => Promise<void>): (code: number) => Promise<void> {
  let isEnding = false;
  return async (code) => {
    if (isEnding) return;
    isEnding = true;
    clock.after(SHUTDOWN_DEADLINE_MS, () => {
      log.error(`the controller did not stop within ${SHUTDOWN_DEADLINE_MS} ms, and is ended like one that crashed`);
      // `process.exit` would first wait for the store's threads, which may be what blocks the stop.
      process.kill(process.pid, "SIGKILL");
    });
    await close().catch((error: unknown) => log.error({ err: error }, "the controller did not end in good order"));
    process.exit(code);
  };
}
