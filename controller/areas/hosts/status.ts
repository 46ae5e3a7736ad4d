import { errorText, isAppError } from "../../../common/errors.ts";
import { HOST_CONFIG_MAX_ENTRIES, HOST_FACTS_MAX_ENTRIES, POLICY_STATES_MAX } from "../../../common/limits.ts";
import type { Hello } from "../../../proto/gen/agent/v1/agent.ts";
import type { Runtime } from "../../runtime.ts";
import type { Edit } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import type { HostRecords } from "./records.ts";
import type { HostName, Presence } from "./session/presence.ts";
import { hasSshCredentials } from "./ssh/access.ts";
import { CONF_STATE, isSecretName, POLICY_STATE, USAGE_STATE, type HostRecord } from "./store.ts";
import type { AgentIdentity } from "./types.ts";

export interface HostStatusDependencies {
  readonly records: Pick<HostRecords, "find" | "note">;
  readonly presence: Presence;
  readonly runtime: Runtime;
  /** Id of this controller. */
  readonly controllerId: string;
  readonly actAs: (tenant: string, traceparent: string) => Promise<Principal>;
}

/** Writes the state of agents into host records: online or offline, and their facts. */
export class HostStatus {
  readonly #with: HostStatusDependencies;
  readonly #writing = new Map<string, Writing>();
  /** Hosts whose last write failed. */
  readonly #owed = new Map<string, Owed>();
  #closed = false;

  constructor(dependencies: HostStatusDependencies) {
    this.#with = dependencies;
  }

  /**
   * Call when a session of the host began or ended: writes `status` in the host's record. Each host has one write at a
   * time, and the latest state wins. Once the record says `offline`, removes the entry that `controller` held the
   * session. Resolves with true if the record is written; otherwise `again` retries the write.
   */
  changed(name: HostName, controller = this.#with.controllerId): Promise<boolean> {
    const key = `${name.tenant}/${name.host}`;
    if (this.#closed) return Promise.resolve(false);
    const known = this.#writing.get(key);
    if (known) {
      known.isOld = true;
      return known.done;
    }
    const writing: Writing = { isOld: false, done: Promise.resolve(false) };
    this.#writing.set(key, writing);
    writing.done = this.#write({ ...name, controller }, writing);
    return writing.done;
  }

  /** Retries the failed writes. */
  async again(): Promise<void> {
    for (const { controller, ...name } of [...this.#owed.values()]) await this.changed(name, controller);
  }

  /** Writes the facts of a hello. */
  async connected({ tenant, host }: AgentIdentity, hello: Hello): Promise<void> {
    const { facts } = hello;
    const principal = await this.#with.actAs(tenant, "");
    const record = await this.#with.records.find(principal, host);
    const addresses = (facts?.addresses ?? []).slice(0, 64).map((address) => address.slice(0, 100));
    const edits: Edit[] = [
      { column: "agentversion", operation: "set", value: hello.agentVersion.slice(0, 100) },
      { column: "config", operation: "add", value: factsOf(hello) },
    ];
    // An agent must not determine where the host's credentials are sent.
    const open = record?.iplist.length === 0 && !hasSshCredentials(record);
    if (open && addresses.length > 0) edits.push({ column: "iplist", operation: "set", value: addresses });
    await this.#with.records.note(principal, host, edits);
  }

  async noteFacts({ tenant, host }: AgentIdentity, values: Readonly<Record<string, string>>): Promise<void> {
    const principal = await this.#with.actAs(tenant, "");
    const record = await this.#with.records.find(principal, host);
    if (!record) return;
    const nowMs = this.#with.runtime.clock.nowMs();
    const safe = Object.fromEntries(
      fitting(
        record,
        Object.entries(values).filter(([name]) => isFact(name)),
      ),
    );
    const edits: Edit[] = [
      { column: "config", operation: "add", value: safe },
      ...policyEdits(values, record, nowMs),
      ...statesEdit(values, CONF_STATE, "confs"),
      ...statesEdit(values, USAGE_STATE, "usage"),
      { column: "seen", operation: "set", value: nowMs },
    ];
    await this.#with.records.note(principal, host, edits);
  }

  /** Writes the states of all policies of a host without an agent, if one of them is new. */
  async notePolicies(tenant: string, record: HostRecord, states: Readonly<Record<string, string>>): Promise<void> {
    const isSame = JSON.stringify(sorted(states)) === JSON.stringify(sorted(record.policies));
    if (isSame) return;
    const values = Object.fromEntries(Object.entries(states).map(([name, state]) => [POLICY_STATE + name, state]));
    const edits = policyEdits({ ...values, [POLICY_STATE]: "" }, record, this.#with.runtime.clock.nowMs());
    await this.#with.records.note(await this.#with.actAs(tenant, ""), record.host, edits);
  }

  async close(): Promise<void> {
    await Promise.all([...this.#writing.values()].map(({ done }) => done));
    this.#closed = true;
  }

  async #write(owed: Owed, writing: Writing): Promise<boolean> {
    const { tenant, host, controller } = owed;
    const { presence, records, actAs, runtime } = this.#with;
    const key = `${tenant}/${host}`;
    this.#owed.delete(key);
    try {
      let written: boolean | undefined;
      for (;;) {
        if (written === false) await presence.forget(controller, { tenant, host });
        writing.isOld = false;
        const online = await presence.isOnline(tenant, host);
        // Checked again after each write: the host may have come or gone in the meantime, on any controller.
        if (online === written && !writing.isOld) break;
        written = online;
        const principal = await actAs(tenant, "");
        const status = online ? "online" : "offline";
        const isSame = (await records.find(principal, host))?.status === status;
        await records.note(principal, host, [
          { column: "status", operation: "set", value: status },
          ...(isSame ? [] : [{ column: "statustime", operation: "set", value: runtime.clock.nowMs() } as const]),
        ]);
      }
      return true;
    } catch (error) {
      // The tenant was deleted.
      if (isAppError(error, "denied", "not_found")) return true;
      this.#owed.set(key, owed);
      runtime.log.warn({ tenant, host, reason: errorText(error) }, "the status of a host could not be written");
      return false;
    } finally {
      // Done in the same turn as the last check.
      this.#writing.delete(key);
    }
  }
}

function sorted(states: Readonly<Record<string, string>>): Entries {
  return Object.entries(states).sort(([a], [b]) => (a < b ? -1 : 1));
}

interface Owed extends HostName {
  /** The controller that held the session. */
  readonly controller: string;
}

interface Writing {
  /** True if the state changed since the writer read it. */
  isOld: boolean;
  done: Promise<boolean>;
}

/** The states of policies, each with the time since which the host has it. */
function policyEdits(values: Readonly<Record<string, string>>, record: HostRecord, nowMs: number): Edit[] {
  const states = statesIn(values, POLICY_STATE);
  if (states === undefined) return [];
  const times = states.map(([name, state]) => {
    const isSame = Object.hasOwn(record.policies, name) && record.policies[name] === state;
    return [name, (isSame && record.policytimes[name]) || String(nowMs)] as const;
  });
  return [setMap("policies", states), setMap("policytimes", times)];
}

function statesEdit(values: Readonly<Record<string, string>>, prefix: string, column: string): Edit[] {
  const states = statesIn(values, prefix);
  return states === undefined ? [] : [setMap(column, states)];
}

type Entries = readonly (readonly [name: string, text: string])[];

/** All states of one kind; undefined if the agent did not send them. */
function statesIn(values: Readonly<Record<string, string>>, prefix: string): Entries | undefined {
  if (values[prefix] === undefined) return undefined;
  const states = Object.entries(values).filter(([name]) => name.startsWith(prefix) && name !== prefix);
  return states.slice(0, POLICY_STATES_MAX).map(([name, state]) => [name.slice(prefix.length), state]);
}

/** Replaces all entries at once, so those of policies no longer wanted are removed. */
function setMap(column: string, entries: Entries): Edit {
  return { column, operation: "set", value: Object.fromEntries(entries) };
}

const FACT_NAME = /^[A-Za-z][A-Za-z0-9_.-]{0,99}$/;
/** Members that users set: an agent must not redirect SSH. */
const RESERVED = new Set(["username", "address", "port", "extagent_dir", "extagent_start", "extagent_stop"]);

function isFact(name: string): boolean {
  return FACT_NAME.test(name) && !RESERVED.has(name) && !isSecretName(name);
}

/** Bounds facts under ever new names, so that the record keeps room for values that users set. */
function fitting(record: HostRecord, facts: readonly [string, string][]): [string, string][] {
  let room = HOST_CONFIG_MAX_ENTRIES - HOST_FACTS_MAX_ENTRIES - Object.keys(record.config).length;
  return facts.filter(([name]) => record.config[name] !== undefined || room-- > 0);
}

function factsOf(hello: Hello): Record<string, string> {
  const { facts } = hello;
  if (!facts) return {};
  return { os: facts.os.slice(0, 200), arch: facts.arch.slice(0, 50), pid: String(facts.pid) };
}
