import { AppError } from "../../../common/errors.ts";
import type { HostInput, HostList, HostView } from "../../../common/api/hosts.ts";
import { TIME_ZONE } from "../../../common/api/policies.ts";
import { HOST_CONFIG_MAX_ENTRIES, HOST_CONFIG_VALUE_MAX_BYTES } from "../../../common/limits.ts";
import { requireExpected, revisionOf, type Expected } from "../../../common/revisions.ts";
import { timeZoneOf } from "../../../common/times/index.ts";
import type { Value } from "../../../common/value.ts";
import { setMember } from "../../../common/members.ts";
import { isMask, MASK, type SecretBox } from "../../secrets/index.ts";
import type { Edit, ObjectRow, Objects, Rehearsals } from "../objects/index.ts";
import { classAccess, type Principal } from "../permissions/index.ts";
import type { Query } from "../query/index.ts";
import { changesTargets } from "./targets/vitals.ts";
import { HostChanges, type HostChangesDependencies } from "./changes.ts";
import {
  destinationOf,
  isCredential,
  moveOf,
  sealCredential,
  type HostPlace,
  type Move,
  type SealedFor,
} from "./ssh/destination.ts";
import {
  asOwner,
  checkHostName,
  classPath,
  idOf,
  isSecretName,
  recordOf,
  secretContext,
  type HostRecord,
} from "./store.ts";

export interface HostRecordsDependencies extends HostChangesDependencies {
  readonly objects: Objects & Rehearsals;
  readonly query: Query;
  readonly secrets: SecretBox;
  /** Returns true if any controller has a session of the host. */
  readonly isOnline: (tenant: string, host: string) => Promise<boolean>;
  /** Returns true if this controller has a session of the host. */
  readonly isHere: (tenant: string, host: string) => boolean;
}

/** Host records of all tenants. Secrets are sealed when stored; `view` never returns them. */
export class HostRecords {
  readonly #with: HostRecordsDependencies;
  readonly #changes: HostChanges;

  constructor(dependencies: HostRecordsDependencies) {
    this.#with = dependencies;
    this.#changes = new HostChanges(dependencies);
  }

  /** Finishes changes of controllers that are gone. Throws if one of them cannot be written now. */
  finish(tenant: string): Promise<void> {
    return this.#changes.finish(tenant);
  }

  async *list(principal: Principal, filter: HostList): AsyncIterable<readonly HostView[]> {
    for await (const records of this.seen(principal, filter.tag))
      yield (await this.#views(principal, records)).filter((view) => matches(view, filter));
  }

  /** The records that the principal sees, with all columns. With `tag`: of hosts that have it. */
  async *seen(principal: Principal, tag?: string): AsyncIterable<readonly HostRecord[]> {
    const visible = await this.#visible(principal);
    const where = tag === undefined ? [] : [{ kind: "equals", column: "tags", values: [tag] } as const];
    const request = { class: classPath(principal), subtree: false, where };
    for await (const rows of this.#with.objects.unrestricted.read(asOwner(principal), request))
      yield rows.filter((row) => visible(row.id)).map(recordOf);
  }

  /** `undefined` if there is no such record, or if the principal may not see it. */
  async find(principal: Principal, host: string): Promise<HostRecord | undefined> {
    const id = idOf(host);
    const [row] = await this.#with.objects.unrestricted.get(asOwner(principal), [{ id, class: classPath(principal) }]);
    if (!row) return undefined;
    return (await this.#visible(principal, host))(id) ? recordOf(row) : undefined;
  }

  async need(principal: Principal, host: string): Promise<HostRecord> {
    const record = await this.find(principal, host);
    if (!record) throw noHost(host);
    return record;
  }

  /**
   * Creates the host, or changes the named members. A change of the SSH destination or of its expected key removes the
   * stored credentials that the same call does not supply; `warn` is called then.
   */
  async save(principal: Principal, input: HostInput, { warn = noop, expected }: SaveOptions = {}): Promise<HostView> {
    const host = checkHostName(input.host);
    let warnings: readonly string[] = [];
    const revision = await this.#changes.make(principal, host, async (row) => {
      const existing = await this.#own(principal, host, row);
      requireExpected(expected, `The host ${host}`, existing);
      const change = this.#changeOf(principal.tenant, input, existing);
      warnings = change.warnings;
      return { kind: "write", edits: change.edits };
    });
    for (const warning of warnings) warn(warning);
    const view = await this.view(principal, await this.need(principal, host));
    // Another change may have followed: a caller that expects this revision must then be refused.
    return { ...view, revision: revision ?? view.revision };
  }

  /**
   * Changes a host by what `change` makes of its record, which is called again if another change came first. Returns
   * false if there is no such record, or if the principal may not see it.
   */
  async edit(principal: Principal, host: string, change: (record: HostRecord) => HostInput): Promise<boolean> {
    const revision = await this.#changes.make(principal, host, async (row) => {
      if (row === undefined || !(await this.#visible(principal, host))(row.id)) return undefined;
      const record = recordOf(row);
      return { kind: "write", edits: this.#changeOf(principal.tenant, change(record), record).edits };
    });
    return revision !== undefined;
  }

  /** Makes the host one with an agent, unless it is. */
  async noteAgent(principal: Principal, host: string): Promise<void> {
    const input = { host: checkHostName(host), isagent: 1 };
    await this.#changes.make(principal, host, async (row) => {
      const existing = await this.#own(principal, host, row);
      if (existing?.isagent === 1) return undefined;
      return { kind: "write", edits: this.#changeOf(principal.tenant, input, existing).edits };
    });
  }

  async remove(principal: Principal, host: string, expected?: Expected): Promise<void> {
    await this.#changes.make(principal, host, async (row) => {
      const record = row && (await this.#visible(principal, host))(row.id) ? recordOf(row) : undefined;
      if (!record) throw noHost(host);
      requireExpected(expected, `The host ${host}`, record);
      return { kind: "remove" };
    });
  }

  /** Adds and removes tags. Returns false if the host no longer exists. */
  async retag(principal: Principal, host: string, edits: readonly Edit[]): Promise<boolean> {
    const revision = await this.#changes.make(principal, host, (row) =>
      Promise.resolve(row && { kind: "write", edits }),
    );
    return revision !== undefined;
  }

  /**
   * Writes columns that the platform itself maintains: facts, status, depots, the first SSH key. The host keeps its
   * revision. Returns false if the host no longer exists.
   */
  async note(principal: Principal, host: string, edits: readonly Edit[]): Promise<boolean> {
    const ref = { id: idOf(host), class: classPath(principal) };
    const isThere = await this.#with.objects.unrestricted.update(asOwner(principal), ref, edits);
    if (isThere && edits.some(changesTargets)) this.#with.onChanged?.(principal.tenant, host);
    return isThere;
  }

  async view(principal: Principal, record: HostRecord): Promise<HostView> {
    const online = await this.#with.isOnline(principal.tenant, record.host);
    const [view] = await this.#views(principal, [{ ...record, status: online ? "online" : "offline" }]);
    if (view === undefined) throw new RangeError("a record has a view");
    return view;
  }

  async #views(principal: Principal, records: readonly HostRecord[]): Promise<readonly HostView[]> {
    const filter = await this.#with.objects.visible.records(principal, classPath(principal));
    return records.map((record) => {
      const { id, class: path, host } = record;
      const revision = revisionOf(record);
      return { ...filled(filter.shown(this.#whole(principal, record))), id, class: path, host, revision };
    });
  }

  #whole(principal: Principal, record: HostRecord): HostView {
    const secrets = Object.fromEntries(Object.keys(record.credentials).map((name) => [name, MASK]));
    return {
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
      depottimes: { ...record.depottimes },
      policies: { ...record.policies },
      policytimes: { ...record.policytimes },
      confs: { ...record.confs },
      usage: { ...record.usage },
      config: { ...record.config, ...secrets },
      // A check for sessions of other controllers would cost one read per host.
      status: record.status === "online" || this.#with.isHere(principal.tenant, record.host) ? "online" : "offline",
      ...(record.statustime !== undefined && { statustime: record.statustime }),
      revision: revisionOf(record),
    };
  }

  /** A record that the principal may not see must not be treated as absent: a write would overwrite it. */
  async #own(principal: Principal, host: string, row: ObjectRow | undefined): Promise<HostRecord | undefined> {
    if (!row) return undefined;
    if ((await this.#visible(principal, host))(row.id)) return recordOf(row);
    throw new AppError("denied", `${principal.user} may not change the host ${host}.`);
  }

  #changeOf(tenant: string, input: HostInput, existing: HostRecord | undefined): InputChange {
    const { host, config = {}, secret, ...columns } = input;
    const named = splitConfig(config, existing?.config);
    const after = placeAfter(input, named, existing);
    const move = existing ? moveOf(existing, after, broughtBy(input, named)) : NO_MOVE;
    checkConfig({ ...existing?.config, ...existing?.credentials, ...named.plain, ...named.secret });
    const seal = (name: string, text: string) =>
      this.#seal(name, text, { tenant, host, destination: destinationOf(after) });
    const sealed = Object.fromEntries(Object.entries(named.secret).map(([name, text]) => [name, seal(name, text)]));
    const edits = [
      ...setEdits({ ...columns, ...(move.keyGone && { sshkey: "" }) }),
      ...this.#secretEdits(tenant, host, secret),
      ...mapEdit("config", "add", named.plain),
      ...mapEdit("credentials", "add", sealed),
      ...takeEdit(
        "config",
        named.gone.filter((name) => !isSecretName(name)),
      ),
      ...takeEdit("credentials", [...named.gone.filter(isSecretName), ...move.credentialsGone]),
    ];
    return { edits, warnings: warningsOf(host, move) };
  }

  #secretEdits(tenant: string, host: string, secret: string | null | undefined): Edit[] {
    if (secret === null) return [{ column: "secret", operation: "set", value: undefined }];
    if (secret === undefined || isMask(secret)) return [];
    const sealed = this.#with.secrets.seal(secret, secretContext(tenant, host, "secret"));
    return [{ column: "secret", operation: "set", value: sealed }];
  }

  #seal(name: string, text: string, whose: SealedFor): string {
    const { secrets } = this.#with;
    if (isCredential(name)) return sealCredential(secrets, name, text, whose);
    return secrets.seal(text, secretContext(whose.tenant, whose.host, name));
  }

  /** Evaluates the principal's row conditions, which only MQL can do. */
  async #visible(principal: Principal, host?: string): Promise<(id: string) => boolean> {
    const path = classPath(principal);
    const access = classAccess(principal, path);
    if (!access.readable) throw new AppError("denied", `${principal.user} may not read ${path}.`);
    if (access.where === undefined) return () => true;
    const ids = new Set<Value | undefined>();
    const narrowed = host === undefined ? "" : " WHERE host = ?";
    const rows = await this.#with.query.rows(
      asOwner(principal),
      `SELECT id FROM ${path}${narrowed} LIMIT -1`,
      host === undefined ? undefined : [host],
    );
    for (const row of rows) ids.add(row.id);
    return (id) => ids.has(id);
  }
}

const noop = (): void => undefined;

export interface SaveOptions {
  /** Called with each warning. */
  readonly warn?: ((text: string) => void) | undefined;
  readonly expected?: Expected | undefined;
}

function noHost(host: string): AppError {
  return new AppError("not_found", `There is no host ${host}.`);
}

interface InputChange {
  readonly edits: readonly Edit[];
  /** Warnings about values that the change removed and that the call did not name. */
  readonly warnings: readonly string[];
}

/** Members of `config` that a call names, with unsealed secrets. */
interface NamedConfig {
  readonly plain: Readonly<Record<string, string>>;
  readonly secret: Readonly<Record<string, string>>;
  readonly gone: readonly string[];
}

const NO_MOVE: Move = { credentialsGone: [], keyGone: false };

function splitConfig(config: Readonly<Record<string, unknown>>, present: HostPlace["config"] = {}): NamedConfig {
  const plain: Record<string, string> = {};
  const secret: Record<string, string> = {};
  const gone: string[] = [];
  for (const [name, value] of Object.entries(config)) {
    if (value === null) gone.push(name);
    else if (!isSecretName(name)) setMember(plain, name, configText(name, value, present));
    else if (!isMask(configText(name, value, present))) setMember(secret, name, configText(name, value, present));
  }
  return { plain, secret, gone };
}

function placeAfter(input: HostInput, named: NamedConfig, existing: HostRecord | undefined): HostPlace {
  const config = { ...existing?.config, ...named.plain };
  return {
    host: input.host,
    iplist: input.iplist ?? existing?.iplist ?? [],
    sshkey: input.sshkey ?? existing?.sshkey ?? "",
    config: Object.fromEntries(Object.entries(config).filter(([name]) => !named.gone.includes(name))),
  };
}

function broughtBy(input: HostInput, named: NamedConfig): ReadonlySet<string> {
  const taken = named.gone.filter(isCredential);
  return new Set([...Object.keys(named.secret), ...taken, ...(input.sshkey === undefined ? [] : ["sshkey"])]);
}

function warningsOf(host: string, { credentialsGone, keyGone }: Move): string[] {
  const names = credentialsGone.join(", ");
  return [
    ...(names === ""
      ? []
      : [`The stored ${names} of ${host} belonged to where SSH led before and was dropped: send it again.`]),
    ...(keyGone ? [`The SSH key known of ${host} belonged to its former address and was dropped.`] : []),
  ];
}

function setEdits(columns: Readonly<Record<string, Value | undefined>>): Edit[] {
  return Object.entries(columns).flatMap(([column, value]) =>
    value === undefined ? [] : [{ column, operation: "set" as const, value }],
  );
}

function matches(view: HostView, filter: HostList): boolean {
  if (filter.tag !== undefined && !view.tags.includes(filter.tag)) return false;
  return filter.status === undefined || (view.status === "online") === filter.status;
}

/** Clients send back values that they have read, so an invalid zone that the host already has may stay. */
function configText(name: string, value: unknown, present: HostPlace["config"]): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  if (Buffer.byteLength(text) > HOST_CONFIG_VALUE_MAX_BYTES)
    throw new AppError("too_large", `config.${name} is too long.`);
  if (name === TIME_ZONE && text.trim() !== "" && text !== present[TIME_ZONE]) timeZoneOf(text);
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

/** Hidden columns do not exist for the principal: they appear as if they were never set. */
function filled(shown: Partial<HostView>): Omit<HostView, "id" | "class" | "host" | "revision"> {
  return {
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
    depottimes: {},
    policies: {},
    policytimes: {},
    confs: {},
    usage: {},
    status: "offline",
    tags: [],
    ...shown,
  };
}
