import type { Stores } from "../../../store/engine.ts";
import { entriesUnder } from "../../../store/entries.ts";
import { decodeStored, encodeJson } from "../../../store/format.ts";
import type { KvOperation } from "../../../store/kv.ts";
import type { Principal } from "../../permissions/index.ts";
import { executionKey, type OpenExecution } from "../runs/executions.ts";
import { hasOpenHosts, type OpenRun, type RunCaller } from "../runs/open-runs.ts";
import type { Run } from "../runs/plan.ts";

const PREFIX = "jobs/rights/";

/**
 * The rights of the user who asked for a run, stored once for all its hosts. They are in the entry of its execution if
 * it has one, or in the entry of its only host. Otherwise they are in KvStore `jobs/rights/<run>`, written with the
 * entry of the first host and kept while one of its hosts is open.
 */
export class RunRights {
  readonly #stores: Stores;

  constructor({ stores }: { readonly stores: Stores }) {
    this.#stores = stores;
  }

  /** `undefined`: they are no longer stored. */
  async of({ runId, order: { principal } }: Pick<OpenRun, "runId" | "order">): Promise<Principal | undefined> {
    if (isWhole(principal)) return principal;
    const { kv } = await this.#stores.tenant(principal.tenant);
    const execution = await kv.get(executionKey(runId));
    if (execution) return decodeStored<OpenExecution>(execution.value).order.principal;
    const entry = await kv.get(rightsKey(runId));
    return entry && decodeStored<Principal>(entry.value);
  }

  /** Removes them if no host of the run is open. */
  async end(tenant: string, runId: string): Promise<void> {
    if (await hasOpenHosts(this.#stores, tenant, runId)) return;
    const { kv } = await this.#stores.tenant(tenant);
    await kv.delete(rightsKey(runId));
  }

  /** Removes the rights of finished runs whose controller stopped. */
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
