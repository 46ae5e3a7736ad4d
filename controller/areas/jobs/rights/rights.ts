import type { Stores } from "../../../store/engine.ts";
import { entriesUnder } from "../../../store/kv/entries.ts";
import { decodeStored, encodeJson } from "../../../store/format.ts";
import type { KvOperation } from "../../../store/kv.ts";
import type { Principal } from "../../permissions/index.ts";
import { executionKey, type OpenExecution } from "../runs/executions.ts";
import { hasOpenHosts, type OpenRun, type RunCaller } from "../runs/open-runs.ts";
import type { Run } from "../runs/plan.ts";

const PREFIX = "jobs/rights/";

/**
 * Finds the rights of the user who requested a run. They are stored once for all hosts: in the entry of the execution,
 * if it has one; in the entry of the host, if the run has only one; otherwise in KvStore `jobs/rights/<run>`. That key
 * is written with the entry of the first host, and kept while the run is open on some host.
 */
export class RunRights {
  readonly #stores: Stores;

  constructor({ stores }: { readonly stores: Stores }) {
    this.#stores = stores;
  }

  /** The rights of the run; `undefined`: they are no longer stored. */
  async of({ runId, order: { principal } }: Pick<OpenRun, "runId" | "order">): Promise<Principal | undefined> {
    if (isWhole(principal)) return principal;
    const { kv } = await this.#stores.tenant(principal.tenant);
    const execution = await kv.get(executionKey(runId));
    if (execution) return decodeStored<OpenExecution>(execution.value).order.principal;
    const entry = await kv.get(rightsKey(runId));
    return entry && decodeStored<Principal>(entry.value);
  }

  /** Removes the key with the rights, unless the run is still open on some host. */
  async end(tenant: string, runId: string): Promise<void> {
    if (await hasOpenHosts(this.#stores, tenant, runId)) return;
    const { kv } = await this.#stores.tenant(tenant);
    await kv.delete(rightsKey(runId));
  }

  /** Removes the rights of ended runs, for runs whose controller stopped. */
  async sweep(tenant: string): Promise<void> {
    const { kv } = await this.#stores.tenant(tenant);
    for await (const { key } of entriesUnder(kv, PREFIX)) await this.end(tenant, key.slice(PREFIX.length));
  }
}

export function rightsKey(runId: string): string {
  return PREFIX + runId;
}

export function rightsNote({ id, order }: Pick<Run, "id" | "order">): KvOperation {
  return { kind: "put", key: rightsKey(id), value: encodeJson(order.principal) };
}

function isWhole(principal: RunCaller | Principal): principal is Principal {
  return "grants" in principal;
}
