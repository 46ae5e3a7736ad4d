import { errorText } from "../../../common/errors.ts";
import { HOST_CONFIG_MAX_ENTRIES, HOST_FACTS_MAX_ENTRIES, POLICY_STATES_MAX } from "../../../common/limits.ts";
import type { Hello } from "../../../proto/gen/agent/v1/agent.ts";
import type { Runtime } from "../../runtime.ts";
import type { Edit, Objects } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import { classPath, type HostRecords } from "./records.ts";
import type { Presence } from "./session/presence.ts";
import { hasSshCredentials } from "./ssh/access.ts";
import { isSecretName, POLICY_STATE, recordOf, type HostRecord } from "./store.ts";
import type { AgentIdentity } from "./types.ts";

export interface HostStatusDependencies {
  readonly records: HostRecords;
  readonly presence: Presence;
  readonly objects: Objects;
  readonly runtime: Runtime;
  readonly actAs: (tenant: string, traceparent: string) => Promise<Principal>;
}

/** Writes into host records what agents show of themselves: whether they are here, and their facts. */
export class HostStatus {
  readonly #with: HostStatusDependencies;
  readonly #writing = new Map<string, Promise<void>>();
  #closed = false;

  constructor(dependencies: HostStatusDependencies) {
    this.#with = dependencies;
  }

  /**
   * The presence of the host changed: the record follows. One write at a time for each host, and the last word is the
   * truth.
   */
  changed(tenant: string, host: string): void {
    const key = `${tenant}/${host}`;
    if (this.#closed || this.#writing.has(key)) return;
    this.#writing.set(key, this.#write(tenant, host));
  }

  /** What a hello tells. */
  async connected({ tenant, host }: AgentIdentity, hello: Hello): Promise<void> {
    const { facts } = hello;
    const principal = await this.#with.actAs(tenant, "");
    const record = await this.#with.records.find(principal, host);
    const addresses = (facts?.addresses ?? []).slice(0, 64).map((address) => address.slice(0, 100));
    const edits: Edit[] = [
      { column: "agentversion", operation: "set", value: hello.agentVersion.slice(0, 100) },
      { column: "config", operation: "add", value: factsOf(hello) },
    ];
    // An agent must not say where the host's credentials are sent to.
    const open = record?.iplist.length === 0 && !hasSshCredentials(record);
    if (open && addresses.length > 0) edits.push({ column: "iplist", operation: "set", value: addresses });
    await this.#with.records.note(principal, host, edits);
  }

  async noteFacts({ tenant, host }: AgentIdentity, values: Readonly<Record<string, string>>): Promise<void> {
    const principal = await this.#with.actAs(tenant, "");
    const record = await this.#with.records.find(principal, host);
    if (!record) return;
    const safe = Object.fromEntries(
      fitting(
        record,
        Object.entries(values).filter(([name]) => isFact(name)),
      ),
    );
    const edits: Edit[] = [
      { column: "config", operation: "add", value: safe },
      ...statesEdit(values),
      { column: "seen", operation: "set", value: this.#with.runtime.clock.nowMs() },
    ];
    await this.#with.records.note(principal, host, edits);
  }

  async reconcile(tenant: string): Promise<void> {
    const principal = await this.#with.actAs(tenant, "");
    const where = [{ kind: "equals", column: "status", values: ["online"] } as const];
    for await (const rows of this.#with.objects.read(principal, {
      class: classPath(principal),
      subtree: false,
      where,
    })) {
      for (const { host, status } of rows.map(recordOf)) {
        if (status === "online" && !this.#with.presence.isOnline(tenant, host)) this.changed(tenant, host);
      }
    }
    await this.#settled();
  }

  async close(): Promise<void> {
    await this.#settled();
    this.#closed = true;
  }

  async #settled(): Promise<void> {
    await Promise.all(this.#writing.values());
  }

  async #write(tenant: string, host: string): Promise<void> {
    const { presence, records, actAs, runtime } = this.#with;
    let written: boolean | undefined;
    try {
      while (written !== presence.isOnline(tenant, host)) {
        written = presence.isOnline(tenant, host);
        await records.note(await actAs(tenant, ""), host, [
          { column: "status", operation: "set", value: written ? "online" : "offline" },
        ]);
      }
    } catch (error) {
      runtime.log.warn({ tenant, host, reason: errorText(error) }, "the status of a host could not be written");
    } finally {
      // In the same turn as the last look at the presence.
      this.#writing.delete(`${tenant}/${host}`);
    }
  }
}

/** All states of policies at once, so that those that are not wanted any more go. */
function statesEdit(values: Readonly<Record<string, string>>): Edit[] {
  if (values[POLICY_STATE] === undefined) return [];
  const states = Object.entries(values).filter(([name]) => name.startsWith(POLICY_STATE) && name !== POLICY_STATE);
  const named = states.slice(0, POLICY_STATES_MAX).map(([name, state]) => [name.slice(POLICY_STATE.length), state]);
  return [{ column: "policies", operation: "set", value: Object.fromEntries(named) }];
}

const FACT_NAME = /^[A-Za-z][A-Za-z0-9_.-]{0,99}$/;
/** Members that people set: an agent must not lead SSH elsewhere. */
const RESERVED = new Set(["username", "address", "port", "extagent_dir", "extagent_start", "extagent_stop"]);

function isFact(name: string): boolean {
  return FACT_NAME.test(name) && !RESERVED.has(name) && !isSecretName(name);
}

/** Facts under ever new names leave room in the record for what people set. */
function fitting(record: HostRecord, facts: readonly [string, string][]): [string, string][] {
  let room = HOST_CONFIG_MAX_ENTRIES - HOST_FACTS_MAX_ENTRIES - Object.keys(record.config).length;
  return facts.filter(([name]) => record.config[name] !== undefined || room-- > 0);
}

function factsOf(hello: Hello): Record<string, string> {
  const { facts } = hello;
  if (!facts) return {};
  return { os: facts.os.slice(0, 200), arch: facts.arch.slice(0, 50), pid: String(facts.pid) };
}
