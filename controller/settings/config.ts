import { readFileSync } from "node:fs";
import { availableParallelism, homedir } from "node:os";
import { join, resolve } from "node:path";
import { getHeapStatistics } from "node:v8";
import { parse } from "smol-toml";
import { AppError, errorText } from "../../common/errors.ts";
import {
  HTTP_BODY_MEMORY_DEFAULT_MIB,
  HTTP_BODY_MEMORY_MIN_MIB,
  TARGET_HOLD_HOSTS,
  TARGET_HOLD_PERCENT,
  TARGET_HOSTS_MAX,
  WORKER_THREADS_MAX,
} from "../../common/limits.ts";
import { nearestName } from "../../common/text/nearest.ts";
import { refusing, textOf as decodedText } from "../../common/text/text-stream.ts";
import { HSTS_REACHES, type HstsReach } from "../http/connections/browsers.ts";
import { fileHistory, type FileHistorySettings } from "./history.ts";
import { isLoopback } from "./network.ts";
import type { KeySource } from "../secrets/index.ts";
import { shownSettings, type ShownSetting } from "./shown.ts";
import { storeAccess } from "./store.ts";
import type { StoreAccess } from "../store/access.ts";
import { openIdSettings, type OpenIdSettings } from "./openid.ts";
import { type LogLevel, type SettingName, SETTINGS, LOG_LEVELS } from "./catalogue.ts";
import {
  type Given,
  wrong,
  portOf,
  matching,
  oneOf,
  list,
  networks,
  yesOrNo,
  endpoints,
  replicas,
  whole,
} from "./values.ts";

/** All settings, with defaults applied. */
export interface Settings {
  readonly host: string;
  readonly port: number;
  readonly agentPort: number;
  readonly publicNames: readonly string[];
  /** Without a path and a trailing slash. Absent: commands of job runs do not reach the context of their run. */
  readonly httpUrl: string | undefined;
  readonly trustedProxies: readonly string[];
  readonly hsts: HstsReach;
  readonly passwordWords: readonly string[];
  readonly metricsReaders: readonly string[];
  readonly outboundNetworks: readonly string[];
  readonly outboundPublic: boolean;
  readonly dataDir: string;
  readonly tenant: string;
  readonly ospace: string;
  readonly adminUser: string;
  readonly adminPassword: string | undefined;
  /** On the embedded engine a missing file is created. */
  readonly secretKey: KeySource;
  /** Absent: the audit trail is not anchored. */
  readonly auditAnchorFile: string | undefined;
  readonly store: "embedded" | "cluster";
  readonly etcdEndpoints: readonly string[];
  readonly cassandraContactPoints: readonly string[];
  readonly cassandraDatacenter: string;
  /** Absent: the engine decides by the number of nodes. */
  readonly cassandraReplicationFactor: number | undefined;
  readonly etcdAccess: StoreAccess;
  readonly cassandraAccess: StoreAccess;
  readonly clusterPrefix: string;
  readonly demo: boolean;
  readonly sshTrustFirstKey: boolean;
  readonly targetHold: { readonly percent: number; readonly hosts: number };
  readonly licenseKeys: readonly string[];
  /** Absent: users sign in by password only. */
  readonly openId: OpenIdSettings | undefined;
  readonly localAgent: boolean;
  /** Absent: the controller's own user. */
  readonly localAgentUser: string | undefined;
  readonly workerThreads: number;
  readonly bodyMemoryMib: number;
  /** Absent: contents of replaced and removed files are not kept. */
  readonly fileHistory: FileHistorySettings | undefined;
  readonly logLevel: LogLevel;
  /** All settings as they are given, without secrets. */
  readonly shown: readonly ShownSetting[];
}

/** Variables with the same prefix that other programs of this project read. */
const VARIABLES_OF_OTHERS =
  /^ODP_(AGENT_(CONTROLLER|TOKEN|DIR|NAME|ENROL|OUTBOX_MAX_BYTES|TUNNELS)|URL|USER|PASSWORD|TOKEN|CONTEXT|CONFIG_DIR|REQUIRE_CLUSTER|LOCAL_CACHE|CRASH_ROUNDS|TEST_[A-Z_]+)$/;

/** Kubernetes sets addresses of services as variables in every container; those of a service odp have our prefix. */
const SERVICE_ADDRESS = /^(tcp|udp|sctp):\/\//;

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Reads the variables and the configuration file; variables win. `AppError("invalid")` names the wrong setting, or an
 * unknown one of the file. An unknown variable may belong to another program: it is reported and ignored.
 */
export function readSettings(environment: Environment, warn: (text: string) => void = () => {}): Settings {
  const variables = fromEnvironment(environment, warn);
  const file = variables.get("config");
  return settle(new Map([...fromFile(file ?? "odp.toml", file !== undefined), ...variables]));
}

function fromEnvironment(environment: Environment, warn: (text: string) => void): Given {
  const given = new Map<SettingName, string>();
  for (const [variable, value] of Object.entries(environment)) {
    if (!variable.startsWith("ODP_") || value === undefined || VARIABLES_OF_OTHERS.test(variable)) continue;
    const name = variable.slice("ODP_".length).toLowerCase();
    const setting = SETTINGS.find((candidate) => candidate.name === name);
    if (setting === undefined) warn(`The variable ${variable} is left out: there is no setting ${name}${meant(name)}`);
    else if (SERVICE_ADDRESS.test(value))
      warn(`The variable ${variable} is left out: ${value} is the address of a service, as Kubernetes sets it.`);
    else given.set(setting.name, value);
  }
  return given;
}

function fromFile(path: string, required: boolean): Given {
  let text: string;
  try {
    text = decodedText(readFileSync(path), refusing("it", "write it in UTF-8"));
  } catch (error) {
    if (!required && (error as NodeJS.ErrnoException).code === "ENOENT") return new Map();
    throw new AppError("invalid", `The configuration file ${path} cannot be read: ${errorText(error)}`);
  }
  return new Map(
    Object.entries(parseToml(path, text)).map(([name, value]) => [
      known(name, `${name} in ${path}`),
      textOf(name, value),
    ]),
  );
}

function parseToml(path: string, text: string): Record<string, unknown> {
  try {
    return parse(text);
  } catch (error) {
    throw new AppError("invalid", `The configuration file ${path} is not TOML: ${errorText(error)}`);
  }
}

function textOf(name: string, value: unknown): string {
  if (Array.isArray(value)) return value.join(",");
  if (typeof value === "boolean") return value ? "1" : "0";
  if (typeof value === "string" || typeof value === "number") return String(value);
  throw wrong(name, "it must be a text, a number, true or false, or a list of texts");
}

function known(name: string, shown: string): SettingName {
  const setting = SETTINGS.find((candidate) => candidate.name === name);
  if (!setting) throw new AppError("invalid", `There is no setting ${shown}${meant(name)}`);
  return setting.name;
}

/** End of the error message for an unknown setting. */
function meant(name: string): string {
  const names = SETTINGS.map((one) => one.name);
  const nearest = nearestName(name, names);
  return nearest === undefined ? `. Known: ${names.join(", ")}.` : `; did you mean ${nearest}?`;
}

function settle(given: Given): Settings {
  const text = (name: SettingName, otherwise: string): string => given.get(name) || otherwise;
  const port = portOf(given, "port", 8080);
  const tenant = matching(
    "tenant",
    text("tenant", "matrix"),
    /^[a-z][a-z0-9_]{0,47}$/,
    "1 to 48 lower-case letters, digits and _",
  );
  const dataDir = resolve(text("data_dir", "data").replace(/^~(?=\/|$)/, homedir()));
  const host = text("host", "127.0.0.1");
  const store = oneOf("store", text("store", "embedded"), ["embedded", "cluster"]);
  return {
    host,
    port,
    agentPort: portOf(given, "agent_port", port === 0 ? 0 : port + 1),
    publicNames: list(text("public_names", host)),
    httpUrl: httpUrlOf(text("http_url", "")),
    trustedProxies: networks("trusted_proxies", text("trusted_proxies", "")),
    hsts: oneOf("hsts", text("hsts", "subdomains"), HSTS_REACHES),
    passwordWords: list(text("password_words", "")),
    metricsReaders: networks("metrics_readers", text("metrics_readers", "127.0.0.0/8,::1")),
    outboundNetworks: networks("outbound_networks", text("outbound_networks", "")),
    outboundPublic: yesOrNo("outbound_public", text("outbound_public", "1")),
    dataDir,
    tenant,
    ospace: matching("ospace", text("ospace", `/${tenant}`), /^\/[\p{L}\p{N}_]+$/u, "a / and one name"),
    adminUser: matching(
      "admin_user",
      text("admin_user", "admin"),
      /^[^\s:/]{1,64}$/,
      "1 to 64 characters without spaces, : and /",
    ),
    adminPassword: given.get("admin_password") || undefined,
    secretKey: keySource(given, { store, dataDir }),
    auditAnchorFile: given.get("audit_anchor_file") ? resolve(given.get("audit_anchor_file") ?? "") : undefined,
    store,
    etcdEndpoints: endpoints("etcd_endpoints", text("etcd_endpoints", "127.0.0.1:2379")),
    cassandraContactPoints: endpoints("cassandra_contact_points", text("cassandra_contact_points", "127.0.0.1:9042")),
    cassandraDatacenter: text("cassandra_datacenter", "datacenter1"),
    cassandraReplicationFactor: replicas(given.get("cassandra_replication_factor")),
    etcdAccess: storeAccess({ text: (name) => text(name, ""), wrong }, "etcd"),
    cassandraAccess: storeAccess({ text: (name) => text(name, ""), wrong }, "cassandra"),
    clusterPrefix: matching(
      "cluster_prefix",
      text("cluster_prefix", "odp"),
      /^[a-z][a-z0-9]{0,19}$/,
      "1 to 20 lower-case letters and digits",
    ),
    sshTrustFirstKey: yesOrNo("ssh_trust_first_key", text("ssh_trust_first_key", "1")),
    targetHold: targetHold(text),
    demo: yesOrNo("demo", text("demo", "1")),
    licenseKeys: list(text("license_keys", "")).map((key) =>
      matching("license_keys", key, /^[A-Za-z0-9+/]{43}=$/, "base64 of 32 bytes, several separated by commas"),
    ),
    openId: openIdSettings({ text: (name) => text(name, ""), wrong, firstTenant: tenant }),
    localAgent: yesOrNo("local_agent", text("local_agent", "1")),
    localAgentUser: given.get("local_agent_user") || undefined,
    workerThreads: whole("worker_threads", text("worker_threads", usualThreads()), { from: 1, to: WORKER_THREADS_MAX }),
    bodyMemoryMib: whole("body_memory_mib", text("body_memory_mib", usualBodyMemory()), {
      from: HTTP_BODY_MEMORY_MIN_MIB,
      to: heapMib(),
    }),
    fileHistory: fileHistory(text),
    logLevel: oneOf("log_level", text("log_level", "info"), LOG_LEVELS),
    shown: shownSettings(given),
  };
}

function targetHold(text: (name: SettingName, otherwise: string) => string): Settings["targetHold"] {
  const percent = text("target_hold_percent", String(TARGET_HOLD_PERCENT));
  const hosts = text("target_hold_hosts", String(TARGET_HOLD_HOSTS));
  return {
    percent: whole("target_hold_percent", percent, { from: 0, to: 100 }),
    hosts: whole("target_hold_hosts", hosts, { from: 1, to: TARGET_HOSTS_MAX }),
  };
}

function httpUrlOf(text: string): string | undefined {
  if (text === "") return undefined;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const isBare = url && /^https?:$/.test(url.protocol) && url.href === `${url.origin}/`;
  if (!isBare) throw wrong("http_url", "it must be an address without a path, such as https://odp.example.com");
  return url.origin;
}

/** Warning for an operator who opens plain HTTP to other hosts; `undefined` if there is no problem. */
export function exposureOf({ host, trustedProxies }: Pick<Settings, "host" | "trustedProxies">): string | undefined {
  if (isLoopback(host) || trustedProxies.length > 0) return undefined;
  return (
    `the HTTP interface listens on ${host}, without TLS and with no proxy in front that is trusted: passwords and sessions cross the network as plain text. ` +
    "Put a proxy with TLS in front and name it in trusted_proxies"
  );
}

function keySource(given: Given, { store, dataDir }: Pick<Settings, "store" | "dataDir">): KeySource {
  const names = (["secret_key_file", "secret_key", "secret_key_command"] as const).filter((name) => given.get(name));
  const [name, other] = names;
  if (other !== undefined) throw wrong(other, `${name} says already where the key is`);
  if (name === "secret_key") return { kind: "text", text: given.get(name) ?? "" };
  if (name === "secret_key_command") return { kind: "command", command: given.get(name) ?? "" };
  if (name === undefined && store === "cluster")
    throw wrong("secret_key_file", "a cluster's controllers must share one key");
  const file = resolve(given.get("secret_key_file") ?? join(dataDir, "secret.key"));
  return { kind: "file", file, create: store === "embedded" };
}

/** Leaves one processor for the thread that answers calls. */
function usualThreads(): string {
  return String(Math.min(Math.max(availableParallelism() - 1, 1), WORKER_THREADS_MAX));
}

/** Leaves room on the heap for everything else. */
function usualBodyMemory(): string {
  return String(Math.max(Math.min(HTTP_BODY_MEMORY_DEFAULT_MIB, Math.floor(heapMib() / 2)), HTTP_BODY_MEMORY_MIN_MIB));
}

/** Maximum heap size of this process in MiB. */
function heapMib(): number {
  return Math.floor(getHeapStatistics().heap_size_limit / 1_048_576);
}
