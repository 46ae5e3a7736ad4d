import { AppError } from "../../../common/errors.ts";
import type { HostInput, HostList, HostView } from "../../../common/api/hosts.ts";
import { HOST_CONFIG_MAX_ENTRIES, HOST_CONFIG_VALUE_MAX_BYTES } from "../../../common/limits.ts";
import type { Value } from "../../../common/value.ts";
import type { SecretBox } from "../../secrets/index.ts";
import type { Edit, Objects } from "../objects/index.ts";
import { classAccess, type Principal } from "../permissions/index.ts";
import type { Query } from "../query/index.ts";
import { checkHostName, HOST_CLASS, isSecretName, recordOf, rowOf, secretContext, type HostRecord } from "./store.ts";

/** What stands for a secret in answers; sent back it means: leave it. */
const MASK = "******";

export interface HostRecordsDependencies {
  readonly objects: Objects;
  readonly query: Query;
  readonly secrets: SecretBox;
  readonly isOnline: (tenant: string, host: string) => boolean;
}

/** The host records of all tenants. Secrets go in sealed and never come out through `view`. */
export class HostRecords {
  readonly #with: HostRecordsDependencies;

  constructor(dependencies: HostRecordsDependencies) {
    this.#with = dependencies;
  }

  async *list(principal: Principal, filter: HostList): AsyncIterable<readonly HostView[]> {
    const visible = await this.#visible(principal);
    const where = filter.tag === undefined ? [] : [{ kind: "equals", column: "tags", values: [filter.tag] } as const];
    const request = { class: classPath(principal), subtree: false, where };
    for await (const rows of this.#with.objects.read(principal, request)) {
      const views = rows.filter((row) => visible(row.id)).map((row) => this.view(principal, recordOf(row)));
      yield views.filter((view) => matches(view, filter));
    }
  }

  /** `undefined` when there is none, or none that the principal may see. */
  async find(principal: Principal, host: string): Promise<HostRecord | undefined> {
    const id = `hostinfo:${host}`;
    const [row] = await this.#with.objects.get(principal, [{ id, class: classPath(principal) }]);
    if (!row) return undefined;
    return (await this.#visible(principal, host))(id) ? recordOf(row) : undefined;
  }

  async need(principal: Principal, host: string): Promise<HostRecord> {
    const record = await this.find(principal, host);
    if (!record) throw new AppError("not_found", `There is no host ${host}.`);
    return record;
  }

  /** Makes the host or changes the members that are named. */
  async save(principal: Principal, input: HostInput): Promise<HostView> {
    const host = checkHostName(input.host);
    const existing = await this.find(principal, host);
    const edits = this.#edits(principal.tenant, input, existing);
    await this.#write(principal, host, edits, existing !== undefined);
    return this.view(principal, await this.need(principal, host));
  }

  async remove(principal: Principal, host: string): Promise<void> {
    const record = await this.need(principal, host);
    await this.#with.objects.remove(principal, [{ id: record.id, class: record.class }]);
  }

  /** Columns the platform itself keeps: facts, status, depots, the SSH key. False when there is no such host any more. */
  note(principal: Principal, host: string, edits: readonly Edit[]): Promise<boolean> {
    return this.#with.objects.update(principal, { id: `hostinfo:${host}`, class: classPath(principal) }, edits);
  }

  view(principal: Principal, record: HostRecord): HostView {
    const secrets = Object.fromEntries(Object.keys(record.credentials).map((name) => [name, MASK]));
    const view: HostView = {
      id: record.id,
      class: record.class,
      host: record.host,
      iplist: [...record.iplist],
      domain: record.domain,
      hostgroups: [...record.hostgroups],
      isagent: record.isagent,
      isextagent: record.isextagent,
      iszabbix: record.iszabbix,
      sert: record.sert,
      sshkey: record.sshkey,
      tags: [...record.tags],
      depot: { ...record.depot },
      config: { ...record.config, ...secrets },
      status: this.#with.isOnline(principal.tenant, record.host) ? "online" : "offline",
    };
    return blank(view, classAccess(principal, record.class).hidden);
  }

  async #write(principal: Principal, host: string, edits: readonly Edit[], exists: boolean): Promise<void> {
    const { objects } = this.#with;
    if (exists && (await this.note(principal, host, edits))) return;
    await objects.insert(principal, classPath(principal), [rowOf(host, edits)]);
  }

  #edits(tenant: string, input: HostInput, existing: HostRecord | undefined): Edit[] {
    const { host, config, secret, ...plain } = input;
    const edits: Edit[] = Object.entries(plain)
      .filter(([, value]) => value !== undefined)
      .map(([column, value]) => ({ column, operation: "set", value }));
    if (secret === null) edits.push({ column: "secret", operation: "set", value: undefined });
    else if (secret !== undefined && !isMask(secret)) {
      edits.push({ column: "secret", operation: "set", value: this.#seal(tenant, host, "secret", secret) });
    }
    return [...edits, ...this.#configEdits(tenant, host, config ?? {}, existing)];
  }

  #configEdits(
    tenant: string,
    host: string,
    config: Readonly<Record<string, unknown>>,
    existing: HostRecord | undefined,
  ): Edit[] {
    const plain: Record<string, Value> = {};
    const sealed: Record<string, Value> = {};
    const gone: string[] = [];
    for (const [name, value] of Object.entries(config)) {
      if (value === null) gone.push(name);
      else if (!isSecretName(name)) plain[name] = configText(name, value);
      else if (!isMask(configText(name, value))) sealed[name] = this.#seal(tenant, host, name, configText(name, value));
    }
    checkConfig({ ...existing?.config, ...existing?.credentials, ...plain, ...sealed });
    return [
      ...mapEdit("config", "add", plain),
      ...mapEdit("credentials", "add", sealed),
      ...takeEdit(
        "config",
        gone.filter((name) => !isSecretName(name)),
      ),
      ...takeEdit("credentials", gone.filter(isSecretName)),
    ];
  }

  #seal(tenant: string, host: string, member: string, secret: string): string {
    return this.#with.secrets.seal(secret, secretContext(tenant, host, member));
  }

  /** Row conditions of the principal, which only MQL can evaluate. */
  async #visible(principal: Principal, host?: string): Promise<(id: string) => boolean> {
    const path = classPath(principal);
    const access = classAccess(principal, path);
    if (!access.readable) throw new AppError("denied", `${principal.user} may not read ${path}.`);
    if (access.where === undefined) return () => true;
    const ids = new Set<Value | undefined>();
    const narrowed = host === undefined ? "" : " WHERE host = ?";
    const rows = await this.#with.query.rows(
      principal,
      `SELECT id FROM ${path}${narrowed}`,
      host === undefined ? undefined : [host],
    );
    for (const row of rows) ids.add(row.id);
    return (id) => ids.has(id);
  }
}

export function classPath(principal: Principal): string {
  return principal.ospace + HOST_CLASS;
}

function matches(view: HostView, filter: HostList): boolean {
  if (filter.tag !== undefined && !view.tags.includes(filter.tag)) return false;
  return filter.status === undefined || (view.status === "online") === filter.status;
}

/** Empty (`""`, `null`) and starred texts are what masks look like in clients. */
function isMask(text: string): boolean {
  return /^\**$/.test(text);
}

function configText(name: string, value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  if (Buffer.byteLength(text) > HOST_CONFIG_VALUE_MAX_BYTES)
    throw new AppError("too_large", `config.${name} is too long.`);
  if (name === "port" && !isPort(text))
    throw new AppError("invalid", `config.port is ${JSON.stringify(text.slice(0, 40))}, not a port number.`);
  return text;
}

function isPort(text: string): boolean {
  return /^\d{1,5}$/.test(text) && Number(text) > 0 && Number(text) < 65_536;
}

function checkConfig(config: Readonly<Record<string, unknown>>): void {
  if (Object.keys(config).length <= HOST_CONFIG_MAX_ENTRIES) return;
  throw new AppError("too_large", `config has more than ${HOST_CONFIG_MAX_ENTRIES} members.`);
}

function mapEdit(column: string, operation: "add", value: Record<string, Value>): Edit[] {
  return Object.keys(value).length === 0 ? [] : [{ column, operation, value }];
}

function takeEdit(column: string, names: readonly string[]): Edit[] {
  return names.map((value) => ({ column, operation: "take", value }));
}

/** Hidden columns do not exist for the principal: they are shown as if nothing was ever set. */
function blank(view: HostView, hidden: ReadonlySet<string>): HostView {
  if (hidden.size === 0) return view;
  const empty: HostView = {
    id: view.id,
    class: view.class,
    host: view.host,
    iplist: [],
    domain: "",
    hostgroups: [],
    isagent: 0,
    isextagent: 0,
    iszabbix: 0,
    sert: "",
    sshkey: "",
    config: {},
    depot: {},
    status: "offline",
    tags: [],
  };
  const shown = Object.entries(view).filter(([name]) => !hidden.has(name));
  return { ...empty, ...Object.fromEntries(shown) };
}
