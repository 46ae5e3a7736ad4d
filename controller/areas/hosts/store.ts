import { AppError } from "../../../common/errors.ts";
import type { Stamp } from "../../../common/revisions.ts";
import type { Row, Value } from "../../../common/value.ts";
import type { Edit, ObjectRow } from "../objects/index.ts";
import { byRulesAlone, type Principal } from "../permissions/index.ts";

/** Paths of the classes of hosts, commands and their outputs, relative to the tenant's ospace. */

export const HOST_CLASS = "/system/hostinfo";
export const COMMAND_CLASS = "/system/command";
export const OUTPUT_CLASS = "/system/commandoutput";

/** Column with the stamp of the last change of the definition, as JSON. */
export const STAMP_COLUMN = "stamp";

export function classPath(principal: Principal): string {
  return principal.ospace + HOST_CLASS;
}

export function idOf(host: string): string {
  return `hostinfo:${host}`;
}

export function asOwner(principal: Principal): Principal {
  return byRulesAlone(principal, "hosts:read");
}

/** Prefix of policy states among an agent's values. The bare prefix means that the states are complete. */
export const POLICY_STATE = "policy/";
/** The same for the confs of policies: each value is the SHA-256 of the bytes in place. */
export const CONF_STATE = "conf/";

/** The same for the usage of processes: each value is JSON. */
export const USAGE_STATE = "usage/";

/** A host as the controller knows it; its secrets are still sealed. */
export interface HostRecord {
  readonly id: string;
  readonly class: string;
  readonly host: string;
  readonly iplist: readonly string[];
  readonly domain: string;
  readonly hostgroups: readonly string[];
  readonly isagent: number;
  readonly isextagent: number;
  readonly iszabbix: number;
  readonly sert: string;
  readonly sshkey: string;
  readonly status: string;
  /** Since when the host has its status, in ms; absent: it never had one. */
  readonly statustime: number | undefined;
  readonly tags: readonly string[];
  readonly config: Readonly<Record<string, string>>;
  readonly depot: Readonly<Record<string, string>>;
  readonly depottimes: Readonly<Record<string, string>>;
  readonly policies: Readonly<Record<string, string>>;
  readonly policytimes: Readonly<Record<string, string>>;
  readonly confs: Readonly<Record<string, string>>;
  /** JSON by `policy/<name>` for daemons, and by `extagent`. */
  readonly usage: Readonly<Record<string, string>>;
  readonly secret: string | undefined;
  readonly credentials: Readonly<Record<string, string>>;
  readonly stamp: Stamp | undefined;
}

export function recordOf(row: ObjectRow): HostRecord {
  const values = row.values;
  return {
    id: row.id,
    class: row.class.path,
    host: textOf(values.host),
    iplist: textsOf(values.iplist),
    domain: textOf(values.domain),
    hostgroups: textsOf(values.hostgroups),
    isagent: numberOf(values.isagent),
    isextagent: numberOf(values.isextagent),
    iszabbix: numberOf(values.iszabbix),
    sert: textOf(values.sert),
    sshkey: textOf(values.sshkey),
    status: textOf(values.status),
    statustime: typeof values.statustime === "number" ? values.statustime : undefined,
    tags: textsOf(values.tags),
    config: mapOf(values.config),
    depot: mapOf(values.depot),
    depottimes: mapOf(values.depottimes),
    policies: mapOf(values.policies),
    policytimes: mapOf(values.policytimes),
    confs: mapOf(values.confs),
    usage: mapOf(values.usage),
    secret: typeof values.secret === "string" ? values.secret : undefined,
    credentials: mapOf(values.credentials),
    stamp: stampOf(values[STAMP_COLUMN]),
  };
}

/** Context under which a secret of a host is sealed: it opens for that host and member only. */
export function secretContext(tenant: string, host: string, member: string): string {
  return `${tenant}/host/${host}/${member}`;
}

const SECRET_NAME = /passw|passphrase|secret|private_?key|token|credential/i;

/** Returns true if a member of `config` must never be shown. */
export function isSecretName(name: string): boolean {
  return SECRET_NAME.test(name);
}

/** The same columns as a row for an insert. An insert removes nothing. */
export function rowOf(host: string, edits: readonly Edit[]): Row {
  const row: Row = { host };
  for (const edit of edits) {
    if (edit.operation !== "take" && edit.value !== undefined) row[edit.column] = edit.value;
  }
  return row;
}

function stampOf(value: Value | undefined): Stamp | undefined {
  return typeof value === "string" ? (JSON.parse(value) as Stamp) : undefined;
}

function textOf(value: Value | undefined): string {
  return typeof value === "string" ? value : "";
}

function numberOf(value: Value | undefined): number {
  return typeof value === "number" ? value : 0;
}

function textsOf(value: Value | undefined): readonly string[] {
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === "string") : [];
}

function mapOf(value: Value | undefined): Readonly<Record<string, string>> {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return {};
  return Object.fromEntries(
    Object.entries(value).filter((entry): entry is [string, string] => typeof entry[1] === "string"),
  );
}

const HOST_NAME = /^[\p{L}\p{N}_][\p{L}\p{N}._-]{0,254}$/u;

/** Throws `AppError("invalid")` if the text cannot be a host name. */
export function checkHostName(host: string): string {
  if (HOST_NAME.test(host) && Buffer.byteLength(host) <= 255) return host;
  throw new AppError(
    "invalid",
    `${JSON.stringify(host.slice(0, 100))} is no host name: letters, digits, dots, dashes and underscores, at most 255 bytes.`,
  );
}
