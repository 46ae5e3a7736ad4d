import type { Principal } from "../../permissions/index.ts";
import type { HostRecords } from "../records.ts";
import type { HostStatus } from "../status.ts";
import type { CommandOutcome, DispatchOptions, HostCommand, HostsOverSsh, Transport } from "../types.ts";
import { wayOf } from "./access.ts";
import type { SshJournal } from "./journal.ts";

interface Dependencies {
  readonly records: Pick<HostRecords, "seen" | "find">;
  readonly status: Pick<HostStatus, "notePolicies">;
  readonly ssh: Transport;
  readonly journal: Pick<SshJournal, "depotOf">;
  /** Returns the principal by which the controller itself acts in a tenant. */
  readonly actAs: (tenant: string, traceparent: string) => Promise<Principal>;
}

/** Hosts without an agent, for the work that an agent does elsewhere. The controller itself calls it. */
export class SshHosts implements HostsOverSsh {
  readonly #with: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#with = dependencies;
  }

  async all(tenant: string): Promise<ReadonlyMap<string, Readonly<Record<string, string>>>> {
    const found = new Map<string, Readonly<Record<string, string>>>();
    for await (const page of this.#with.records.seen(await this.#with.actAs(tenant, "")))
      for (const record of page) if (wayOf(record) === "ssh") found.set(record.host, record.policies);
    return found;
  }

  async isOverSsh(tenant: string, host: string): Promise<boolean> {
    const record = await this.#with.records.find(await this.#with.actAs(tenant, ""), host);
    return record !== undefined && wayOf(record) === "ssh";
  }

  run(
    tenant: string,
    host: string,
    command: HostCommand & { readonly kind: "exec" },
    options: DispatchOptions,
  ): Promise<CommandOutcome> {
    return this.#with.ssh.run({ tenant, host, traceparent: "" }, command, options);
  }

  async depotVersion(tenant: string, host: string, depot: string): Promise<string | undefined> {
    return (await this.#with.journal.depotOf({ tenant, host, traceparent: "" }, depot))?.version;
  }

  async notePolicies(tenant: string, host: string, states: Readonly<Record<string, string>>): Promise<void> {
    const record = await this.#with.records.find(await this.#with.actAs(tenant, ""), host);
    // The agent reports the states of its host by itself.
    if (record && wayOf(record) !== "agent") await this.#with.status.notePolicies(tenant, record, states);
  }
}
