import {
  FILE_HISTORY_DAYS_DEFAULT,
  FILE_HISTORY_MIB_DEFAULT,
  HTTP_BODY_MEMORY_DEFAULT_MIB,
  HTTP_BODY_MEMORY_MIN_MIB,
  TARGET_HOLD_HOSTS,
  TARGET_HOLD_PERCENT,
  WORKER_THREADS_MAX,
} from "../../common/limits.ts";
import { STORE_ACCESS_SETTINGS } from "./store.ts";
import { OPENID_SETTINGS } from "./openid.ts";

export const LOG_LEVELS = ["trace", "debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** One setting: its name in the file (the variable is `ODP_` and the name in capitals), its meaning and its values. */
export interface Setting {
  readonly name: string;
  readonly meaning: string;
  readonly default: string;
  /** True if its value is a secret, or may contain one: no call answers it. */
  readonly isSecret?: true;
}

export const SETTINGS = [
  {
    name: "config",
    meaning: "The configuration file (TOML); only as a variable",
    default: "odp.toml, when it is there",
  },
  { name: "host", meaning: "Address the HTTP interface and the agent port listen on", default: "127.0.0.1" },
  { name: "port", meaning: "Port of the HTTP interface", default: "8080" },
  { name: "agent_port", meaning: "Port that agents dial", default: "port + 1" },
  {
    name: "public_names",
    meaning: "Names or addresses agents and other controllers reach this controller by",
    default: "the host",
  },
  {
    name: "http_url",
    meaning:
      "Where hosts reach the HTTP interface, as in `https://odp.example.com`, for commands that use the context of their run; of several controllers an address that leads to any of them",
    default: "none: commands do not reach it",
  },
  {
    name: "trusted_proxies",
    meaning: "Addresses or networks (`10.0.0.0/8`) of proxies in front, whose X-Forwarded-For, -Host and -Proto count",
    default: "none",
  },
  {
    name: "hsts",
    meaning:
      "Which names browsers that came by HTTPS, through a trusted proxy, are told to call by HTTPS only for a year, on every port: subdomains, host, off",
    default: "subdomains",
  },
  {
    name: "password_words",
    meaning:
      "Words of this place, separated by commas, that do not make a password, as the names of the user and the company do not: of the house, its products, its sites",
    default: "none",
    isSecret: true,
  },
  {
    name: "metrics_readers",
    meaning:
      "Addresses or networks that may read `/metrics`, which names tenants; the request names an address, `localhost` or one of `public_names` as its host",
    default: "127.0.0.0/8,::1",
  },
  {
    name: "outbound_networks",
    meaning:
      "Addresses or networks that scripts reach by `http` besides public ones: of this machine, private, link-local, reserved",
    default: "none",
  },
  {
    name: "outbound_public",
    meaning:
      "1 opens public addresses to scripts, and to what an OpenID provider names; 0 leaves the networks of `outbound_networks` alone, and the provider's own host",
    default: "1",
  },
  { name: "data_dir", meaning: "Folder of the embedded store, keys and temporary files", default: "data" },
  { name: "tenant", meaning: "The first tenant", default: "matrix" },
  { name: "ospace", meaning: "Its name space", default: "/ and the tenant" },
  { name: "admin_user", meaning: "Its administrator", default: "admin" },
  {
    name: "admin_password",
    meaning: "The administrator's first password",
    default: "generated and printed once",
    isSecret: true,
  },
  {
    name: "secret_key_file",
    meaning: "Key that seals secrets; never in the store",
    default: "secret.key in data_dir; a cluster requires this or one of the next two",
  },
  {
    name: "secret_key",
    meaning: "The key itself, for keys that come as a variable; several are separated by commas, the first seals",
    default: "as in the file",
    isSecret: true,
  },
  {
    name: "secret_key_command",
    meaning: "A command that writes the lines of a key file, asked at each start (a vault's client); it has 15 s",
    default: "as in the file",
    isSecret: true,
  },
  {
    name: "audit_anchor_file",
    meaning:
      "File outside the store that the newest digests of the audit trail are added to every minute, so that a trail that was cut off or written anew is noticed; " +
      "on another disk, best where the controller may only append. Several controllers may share one",
    default: "none",
  },
  { name: "store", meaning: "Where data lies: embedded or cluster", default: "embedded" },
  { name: "etcd_endpoints", meaning: "host:port of etcd members", default: "127.0.0.1:2379" },
  { name: "cassandra_contact_points", meaning: "host:port of Cassandra nodes", default: "127.0.0.1:9042" },
  { name: "cassandra_datacenter", meaning: "The data centre whose nodes are asked", default: "datacenter1" },
  {
    name: "cassandra_replication_factor",
    meaning: "Replicas of the first tenant's data, settled when it is made",
    default: "3, or as many as there are nodes",
  },
  ...STORE_ACCESS_SETTINGS,
  {
    name: "cluster_prefix",
    meaning: "Begins every key and keyspace: sets installations on one cluster apart",
    default: "odp",
  },
  {
    name: "ssh_trust_first_key",
    meaning:
      "1 records the key that an SSH host shows first, 0 refuses a host until its key is on its record (`sshkey`)",
    default: "1",
  },
  {
    name: "target_hold_percent",
    meaning:
      "Percent of the matched hosts of a policy: a change of targets that takes off more, and at least `target_hold_hosts`, waits for its confirmation ([targets](targets.md))",
    default: String(TARGET_HOLD_PERCENT),
  },
  {
    name: "target_hold_hosts",
    meaning: "Hosts that a change of targets takes off a policy at least before it waits",
    default: String(TARGET_HOLD_HOSTS),
  },
  {
    name: "license_keys",
    meaning: "Public Ed25519 keys (base64) that sign licences; without one there are none and nothing is limited",
    default: "none",
  },
  ...OPENID_SETTINGS,
  { name: "demo", meaning: "1 seeds a small demonstration, 0 leaves it out", default: "1" },
  { name: "local_agent", meaning: "1 runs an agent for this host beside the controller", default: "1" },
  {
    name: "local_agent_user",
    meaning:
      "User (a name, or uid:gid) the agent beside the controller runs as; the controller must be root, and the user able to reach dist and data_dir",
    default: "the controller's",
  },
  {
    name: "worker_threads",
    meaning: `Threads for work that would hold up the others, such as parsing long records by grok: 1 to ${WORKER_THREADS_MAX}; each begins when needed`,
    default: "one less than processors",
  },
  {
    name: "body_memory_mib",
    meaning: `Memory for the bodies of all HTTP calls at once, decoded, beyond which calls are answered \`limited\`: from ${HTTP_BODY_MEMORY_MIN_MIB} to the heap limit of Node, in MiB; one caller has half of it, one tenant three quarters`,
    default: `${HTTP_BODY_MEMORY_DEFAULT_MIB}, or half of Node's heap limit where that is less`,
  },
  {
    name: "file_history_days",
    meaning: "Days for which contents of replaced and removed files are kept; 0 keeps none, and removes what is kept",
    default: String(FILE_HISTORY_DAYS_DEFAULT),
  },
  {
    name: "file_history_mib",
    meaning: "MiB of such contents that a tenant keeps; the oldest ones go first",
    default: String(FILE_HISTORY_MIB_DEFAULT),
  },
  { name: "log_level", meaning: LOG_LEVELS.join(", "), default: "info" },
] as const satisfies readonly Setting[];

export type SettingName = (typeof SETTINGS)[number]["name"];
