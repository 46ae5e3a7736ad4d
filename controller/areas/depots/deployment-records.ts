import { isAppError } from "../../../common/errors.ts";
import { DEPLOY_MESSAGE_MAX_CHARACTERS, KV_TXN_MAX_OPERATIONS } from "../../../common/limits.ts";
import type { Stores } from "../../store/engine.ts";
import { entriesUnder } from "../../store/entries.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import type { KvEntry } from "../../store/kv.ts";
import type { Objects } from "../objects/index.ts";
import { systemPrincipal } from "../permissions/index.ts";
import { DEPLOYMENT_PATH } from "./classes.ts";
import type { DeploymentOutcome } from "./types.ts";

/**
 * What is meant to be done on one host, on record before any of it is sent. Lies under `deployments/<id>/<host>` until
 * its rows are written.
 */
export interface OpenDeployment {
  readonly id: string;
  readonly host: string;
  readonly tenant: string;
  readonly ospace: string;
  readonly traceparent: string;
  readonly user: string;
  readonly action: "deploy" | "undeploy";
  readonly deadlineMs: number;
  /** The ordinal of the first target within the deployment. */
  readonly ordinal: number;
  readonly targets: readonly DeploymentTarget[];
  /** How they ended: decided once, one for each target. */
  readonly outcomes?: readonly DeploymentOutcome[];
}

export interface DeploymentTarget {
  readonly depot: string;
  readonly version: string;
  readonly commandId: string;
}

export interface VersionedDeployment {
  readonly open: OpenDeployment;
  readonly revision: number;
}

const PREFIX = "deployments/";

/** The rows of deployments: each host's outcomes are decided in the KvStore, once, before any row says them. */
export class DeploymentRecords {
  readonly #stores: Stores;
  readonly #objects: Pick<Objects, "ingest">;

  constructor({ stores, objects }: { readonly stores: Stores; readonly objects: Pick<Objects, "ingest"> }) {
    this.#stores = stores;
    this.#objects = objects;
  }

  async open(tenant: string, deployments: readonly OpenDeployment[]): Promise<readonly VersionedDeployment[]> {
    const { kv } = await this.#stores.tenant(tenant);
    const opened: VersionedDeployment[] = [];
    for (let from = 0; from < deployments.length; from += KV_TXN_MAX_OPERATIONS) {
      const some = deployments.slice(from, from + KV_TXN_MAX_OPERATIONS);
      const then = some.map((open) => ({ kind: "put" as const, key: keyOf(open), value: encodeJson(open) }));
      const { revision } = await kv.txn({ if: [], then });
      opened.push(...some.map((open) => ({ open, revision })));
    }
    return opened;
  }

  /** `undefined` when another writer decided before: then that decision stands. */
  async decide(
    { open, revision }: VersionedDeployment,
    outcomes: readonly DeploymentOutcome[],
  ): Promise<OpenDeployment | undefined> {
    const { kv } = await this.#stores.tenant(open.tenant);
    const decided: OpenDeployment = {
      ...open,
      outcomes: outcomes.map((one) => ({ ...one, message: one.message.slice(0, DEPLOY_MESSAGE_MAX_CHARACTERS) })),
    };
    const value = encodeJson(decided);
    const write = () => kv.put(keyOf(open), value, { ifRevision: revision });
    const written = await write().catch((error: unknown) => {
      if (isAppError(error, "unknown_outcome")) return write();
      throw error;
    });
    const mine = written.ok || (written.current !== undefined && Buffer.compare(written.current.value, value) === 0);
    return mine ? decided : undefined;
  }

  async find({
    tenant,
    ...open
  }: Pick<OpenDeployment, "tenant" | "id" | "host">): Promise<VersionedDeployment | undefined> {
    const { kv } = await this.#stores.tenant(tenant);
    const entry = await kv.get(keyOf(open));
    return entry && versioned(entry);
  }

  async all(tenant: string): Promise<readonly VersionedDeployment[]> {
    const { kv } = await this.#stores.tenant(tenant);
    const found: VersionedDeployment[] = [];
    for await (const entry of entriesUnder(kv, PREFIX)) found.push(versioned(entry));
    return found;
  }

  /**
   * Writes what was decided into rows. The platform writes them, not the caller: the right to deploy does not include
   * writing records. Safe to repeat.
   */
  async settle(open: OpenDeployment): Promise<void> {
    const { id, tenant, ospace, traceparent, user, action } = open;
    const records = (open.outcomes ?? []).map(({ startedMs, endedMs, code, ...rest }, at) => ({
      timeMs: endedMs,
      identity: `deployment/${id}/${open.ordinal + at}`,
      values: { action, ...rest, code: code ?? null, started: startedMs, ended: endedMs, username: user },
    }));
    await this.#objects.ingest(systemPrincipal(tenant, ospace, traceparent), `${ospace}${DEPLOYMENT_PATH}`, records);
    const { kv } = await this.#stores.tenant(tenant);
    await kv.delete(keyOf(open));
  }
}

function versioned(entry: KvEntry): VersionedDeployment {
  return { open: decodeStored<OpenDeployment>(entry.value), revision: entry.revision };
}

function keyOf({ id, host }: Pick<OpenDeployment, "id" | "host">): string {
  return `${PREFIX}${id}/${encodeURIComponent(host)}`;
}
