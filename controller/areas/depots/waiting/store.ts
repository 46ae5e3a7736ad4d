import { AppError } from "../../../../common/errors.ts";
import {
  DEPLOY_MAX_S,
  DEPLOY_LOST_AFTER_MS,
  DEPLOY_WAIT_CHANGES_MAX,
  DEPLOY_WAITS_KEEP_MS,
  KV_TXN_MAX_OPERATIONS,
} from "../../../../common/limits.ts";
import type { Stores } from "../../../store/engine.ts";
import { decodeStored, encodeJson } from "../../../store/format.ts";
import type { KvEntry, KvOperation, KvTxn } from "../../../store/kv.ts";
import { entriesUnder } from "../../../store/kv/entries.ts";
import { putOnce, txnOnce } from "../../../store/once.ts";
import type { OpenDeployment } from "../deployment-records.ts";
import type { WaitingDeployment, WaitingHost } from "./types.ts";

const DEPLOYMENTS = "deploywaits/deployment/";
const HOSTS = "deploywaits/host/";
/** `deploywaits/open/<host>/<deployment>`, without a value of its own, until the state of the host is final. */
const OPEN = "deploywaits/open/";
/** A condition and two puts for each host. */
const HOSTS_PER_TXN = Math.floor(KV_TXN_MAX_OPERATIONS / 3);

/** A value as it was read. The next write is conditional on its revision. */
export interface Stored<T> {
  readonly value: T;
  readonly revision: number;
}

/** A host of a waiting deployment. */
export interface HostOfWait {
  readonly tenant: string;
  readonly deployment: string;
  readonly host: string;
}

export interface HostChange {
  /** The deployment must still be as it was read. */
  readonly of: Stored<WaitingDeployment>;
  readonly from: Stored<WaitingHost>;
  readonly to: WaitingHost;
  /** Further parts of the transaction. */
  readonly within?: KvTxn;
}

/** Waiting deployments and the states of their hosts. A deployment exists once its own key does. */
export class WaitingStore {
  readonly #stores: Stores;

  constructor(stores: Stores) {
    this.#stores = stores;
  }

  /** Stores the hosts and then the deployment. If it fails in between, the deployment does not exist. */
  async begin(deployment: WaitingDeployment, hosts: readonly WaitingHost[]): Promise<void> {
    const { kv } = await this.#stores.tenant(deployment.tenant);
    const expiresAtMs = endMsOf(deployment);
    for (let from = 0; from < hosts.length; from += HOSTS_PER_TXN) {
      const some = hosts.slice(from, from + HOSTS_PER_TXN);
      const request = {
        if: some.map((one) => ({ key: hostKey(one), revision: 0 })),
        then: some.flatMap((one): KvOperation[] => [
          { kind: "put", key: hostKey(one), value: encodeJson(one), expiresAtMs },
          { kind: "put", key: openKey(one), value: encodeJson({}), expiresAtMs },
        ]),
      };
      if (!(await txnOnce(kv, request)).ok) throw new AppError("internal", "A deployment was begun twice.");
    }
    const key = DEPLOYMENTS + deployment.deployment;
    await putOnce(kv, { key, value: encodeJson(deployment), ifRevision: 0, expiresAtMs });
  }

  async find(tenant: string, deployment: string): Promise<Stored<WaitingDeployment> | undefined> {
    const { kv } = await this.#stores.tenant(tenant);
    return stored(await kv.get(DEPLOYMENTS + deployment));
  }

  /** All deployments that are listed, the oldest first. */
  async *all(tenant: string): AsyncGenerator<WaitingDeployment> {
    const { kv } = await this.#stores.tenant(tenant);
    for await (const { value } of entriesUnder(kv, DEPLOYMENTS)) yield decodeStored<WaitingDeployment>(value);
  }

  async host(of: HostOfWait): Promise<Stored<WaitingHost> | undefined> {
    const { kv } = await this.#stores.tenant(of.tenant);
    return stored(await kv.get(hostKey(of)));
  }

  /** The hosts of a deployment, in the order of their names. */
  async *hosts(tenant: string, deployment: string): AsyncGenerator<WaitingHost> {
    const { kv } = await this.#stores.tenant(tenant);
    for await (const { value } of entriesUnder(kv, `${HOSTS}${deployment}/`)) yield decodeStored<WaitingHost>(value);
  }

  /** Hosts whose state is not final; of each host the oldest deployment first. */
  async *open(tenant: string): AsyncGenerator<HostOfWait> {
    const { kv } = await this.#stores.tenant(tenant);
    for await (const { key } of entriesUnder(kv, OPEN)) yield openOf(tenant, key);
  }

  /** The oldest open deployment of the host. */
  async oldest(tenant: string, host: string): Promise<HostOfWait | undefined> {
    const { kv } = await this.#stores.tenant(tenant);
    // A page may be empty without being the last one.
    for await (const { key } of entriesUnder(kv, `${OPEN}${encodeURIComponent(host)}/`)) return openOf(tenant, key);
    return undefined;
  }

  /**
   * Returns the revision of the transaction; `undefined` if the deployment or the host was changed in the meantime, and
   * nothing was written.
   */
  async change({ of, from, to, within = { if: [], then: [] } }: HostChange): Promise<number | undefined> {
    const { kv } = await this.#stores.tenant(to.tenant);
    const request = {
      if: [
        { key: DEPLOYMENTS + to.deployment, revision: of.revision },
        { key: hostKey(to), revision: from.revision },
        ...within.if,
      ],
      then: [...putsOf(to, endMsOf(of.value)), ...within.then],
    };
    const { ok, revision } = await txnOnce(kv, request);
    return ok ? revision : undefined;
  }

  /** No attempt begins after this. Returns the deployment; `undefined` if there is none. */
  async cancel(tenant: string, deployment: string, user: string): Promise<Stored<WaitingDeployment> | undefined> {
    const { kv } = await this.#stores.tenant(tenant);
    for (let attempt = 0; attempt < DEPLOY_WAIT_CHANGES_MAX; attempt++) {
      const now = await this.find(tenant, deployment);
      if (now === undefined || now.value.cancelledBy !== undefined) return now;
      const value = { ...now.value, cancelledBy: user };
      const put = { key: DEPLOYMENTS + deployment, value: encodeJson(value), expiresAtMs: endMsOf(value) };
      const written = await putOnce(kv, { ...put, ifRevision: now.revision });
      if (written.ok) return { value, revision: written.revision };
    }
    throw new AppError("unavailable", "The deployment is being changed: try again.");
  }

  /** Stores the decided outcomes of an attempt. The host waits again if they are not those of all depots. Idempotent. */
  async finish(ended: OpenDeployment, nowMs: number): Promise<void> {
    for (let attempt = 0; attempt < DEPLOY_WAIT_CHANGES_MAX; attempt++) {
      const [of, from] = [await this.find(ended.tenant, ended.deployment), await this.host(ended)];
      if (!of || from?.value.state !== "running" || from.value.round !== ended.round) return;
      const outcomes = [...from.value.outcomes, ...(ended.end ?? [])];
      const isOver = outcomes.length >= from.value.commandIds.length;
      const over = outcomes.every(({ state }) => state === "ok") ? "ok" : "failed";
      const to = { ...from.value, outcomes, state: isOver ? over : "waiting", sinceMs: nowMs } as const;
      if ((await this.change({ of, from, to })) !== undefined) return;
    }
    throw new AppError("unavailable", "The state of a host is being changed by others.");
  }

  /** True if the deployment has this command for the host. */
  async gave(of: HostOfWait, commandId: string): Promise<boolean> {
    return (await this.host(of))?.value.commandIds.includes(commandId) ?? false;
  }

  /** Removes the host of a deployment that does not exist. */
  async forget(of: HostOfWait): Promise<void> {
    const { kv } = await this.#stores.tenant(of.tenant);
    await kv.delete(openKey(of));
    await kv.delete(hostKey(of));
  }

  /** Removes an ended deployment. */
  async remove({ tenant, deployment }: Pick<WaitingDeployment, "tenant" | "deployment">): Promise<void> {
    const { kv } = await this.#stores.tenant(tenant);
    await kv.delete(DEPLOYMENTS + deployment);
    for await (const { key } of entriesUnder(kv, `${HOSTS}${deployment}/`)) await kv.delete(key);
  }
}

/** The host, and its open entry until its state is final. */
function putsOf(host: WaitingHost, expiresAtMs: number): readonly KvOperation[] {
  const put = { kind: "put", key: hostKey(host), value: encodeJson(host), expiresAtMs } as const;
  const isOpen = host.state === "waiting" || host.state === "running";
  return isOpen ? [put] : [put, { kind: "delete", key: openKey(host) }];
}

/** The last attempt may begin at the end of the wait, and its controller may die. */
function endMsOf({ untilMs }: WaitingDeployment): number {
  return untilMs + DEPLOY_MAX_S * 1_000 + DEPLOY_LOST_AFTER_MS + DEPLOY_WAITS_KEEP_MS;
}

function stored<T>(entry: KvEntry | undefined): Stored<T> | undefined {
  return entry && { value: decodeStored<T>(entry.value), revision: entry.revision };
}

function hostKey({ deployment, host }: Pick<HostOfWait, "deployment" | "host">): string {
  return `${HOSTS}${deployment}/${encodeURIComponent(host)}`;
}

function openKey({ deployment, host }: Pick<HostOfWait, "deployment" | "host">): string {
  return `${OPEN}${encodeURIComponent(host)}/${deployment}`;
}

function openOf(tenant: string, key: string): HostOfWait {
  const [host = "", deployment = ""] = key.slice(OPEN.length).split("/");
  return { tenant, host: decodeURIComponent(host), deployment };
}
