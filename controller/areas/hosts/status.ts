import { errorText } from "../../../common/errors.ts";
import type { Hello } from "../../../proto/gen/agent/v1/agent.ts";
import type { Runtime } from "../../runtime.ts";
import type { Edit, Objects } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import { classPath, type HostRecords } from "./records.ts";
import type { Presence } from "./session/presence.ts";
import { recordOf } from "./store.ts";
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

  /** The presence of the host changed: the record follows. One write at a time for each host, and the last word is the truth. */
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
    if (record?.iplist.length === 0 && addresses.length > 0)
      edits.push({ column: "iplist", operation: "set", value: addresses });
    await this.#with.records.note(principal, host, edits);
  }

  async noteFacts({ tenant, host }: AgentIdentity, values: Readonly<Record<string, string>>): Promise<void> {
    const safe = Object.fromEntries(
      Object.entries(values).filter(([name]) => FACT_NAME.test(name) && !RESERVED.has(name)),
    );
    const edits: Edit[] = [
      { column: "config", operation: "add", value: safe },
      { column: "seen", operation: "set", value: this.#with.runtime.clock.nowMs() },
    ];
    await this.#with.records.note(await this.#with.actAs(tenant, ""), host, edits);
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

const FACT_NAME = /^[A-Za-z][A-Za-z0-9_.-]{0,99}$/;
/** Members that people set: an agent must not lead SSH elsewhere. */
const RESERVED = new Set(["username", "address", "port", "password", "privatekey", "passphrase"]);

function factsOf(hello: Hello): Record<string, string> {
  const { facts } = hello;
  if (!facts) return {};
  return { os: facts.os.slice(0, 200), arch: facts.arch.slice(0, 50), pid: String(facts.pid) };
}
