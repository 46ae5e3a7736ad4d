import { JOB_CANCEL_LISTEN_AGAIN_MS } from "../../../../common/limits.ts";
import { wait } from "../../../../common/time.ts";
import { entriesUnder } from "../../../store/kv/entries.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Stores } from "../../../store/engine.ts";
import { FollowedKeys } from "../../../store/kv/follow.ts";
import { decodeStored, encodeJson } from "../../../store/format.ts";
import type { KvEntry } from "../../../store/kv.ts";
import { hasOpen } from "./executions.ts";

/** A request to cancel a run, or its part on one host. KvStore: `jobs/cancel/<run>` or `jobs/cancel/<run>/<host>`. */
interface CancelRequest {
  readonly runId: string;
  /** Absent: cancels the run on all of its hosts. */
  readonly host?: string;
  readonly by: string;
}

/**
 * Abort signals of a run that this controller carries out. The reason of each signal is the name of the user who
 * cancelled.
 */
export interface CancelSignals {
  readonly run: AbortSignal;
  /** The signal of one host. It also aborts when the whole run is cancelled. */
  of(host: string): AbortSignal;
  /** Call it once, when this controller no longer carries out the run. */
  leave(): void;
}

interface Entered {
  readonly run: AbortController;
  readonly hosts: Map<string, AbortController>;
  count: number;
}

/** The runs of one tenant that this controller carries out now. */
interface Followed {
  readonly keys: Promise<FollowedKeys | undefined>;
  readonly requests: Map<string, CancelRequest>;
  readonly runs: Map<string, Entered>;
  readonly left: AbortController;
}

const CANCELS = "jobs/cancel/";

/**
 * Requests to cancel runs, stored until the runs have ended. Every controller that carries out a run gets them, also
 * one that takes the run over later. This controller watches the requests of a tenant while it carries out runs of the
 * tenant.
 */
export class RunCancels {
  readonly #stores: Stores;
  readonly #runtime: Runtime;
  readonly #tenants = new Map<string, Followed>();

  constructor({ stores, runtime }: { readonly stores: Stores; readonly runtime: Runtime }) {
    this.#stores = stores;
    this.#runtime = runtime;
  }

  /** Resolves when the request is stored. Safe to repeat. Has no effect on a run that has ended. */
  async request(tenant: string, request: CancelRequest): Promise<void> {
    const { kv } = await this.#stores.tenant(tenant);
    await kv.put(keyOf(request), encodeJson(request));
  }

  enter(tenant: string, runId: string): CancelSignals {
    const followed = this.#tenants.get(tenant) ?? this.#follow(tenant);
    const entered = followed.runs.get(runId) ?? { run: new AbortController(), hosts: new Map(), count: 0 };
    entered.count++;
    followed.runs.set(runId, entered);
    for (const request of followed.requests.values()) if (request.runId === runId) apply(entered, request);
    return {
      run: entered.run.signal,
      of: (host) => controllerOf(entered, host).signal,
      leave: () => {
        if (--entered.count > 0) return;
        followed.runs.delete(runId);
        if (followed.runs.size === 0) void this.#forget(tenant, followed);
      },
    };
  }

  /** Removes the requests for runs that have ended. */
  async sweep(tenant: string): Promise<void> {
    const { kv } = await this.#stores.tenant(tenant);
    for await (const { key, value } of entriesUnder(kv, CANCELS)) {
      if (!(await hasOpen(this.#stores, tenant, decodeStored<CancelRequest>(value).runId))) await kv.delete(key);
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#tenants].map(([tenant, followed]) => this.#forget(tenant, followed)));
  }

  #follow(tenant: string): Followed {
    const requests = new Map<string, CancelRequest>();
    const runs = new Map<string, Entered>();
    const left = new AbortController();
    const followed = { requests, runs, left, keys: this.#keys(tenant, { requests, runs, left }) };
    this.#tenants.set(tenant, followed);
    return followed;
  }

  async #keys(tenant: string, { requests, runs, left }: Omit<Followed, "keys">): Promise<FollowedKeys | undefined> {
    const runtime = this.#runtime;
    const put = ({ key, value }: KvEntry): void => {
      const request = decodeStored<CancelRequest>(value);
      requests.set(key, request);
      const entered = runs.get(request.runId);
      if (entered) apply(entered, request);
    };
    const end = (key: string): void => void requests.delete(key);
    while (!left.signal.aborted) {
      try {
        const { kv } = await this.#stores.tenant(tenant);
        const keys = new FollowedKeys({ kv, runtime, prefix: CANCELS, put, end });
        await keys.start();
        return keys;
      } catch (error) {
        runtime.log.warn({ err: error, tenant }, "cancels of job runs are not heard of yet");
        await wait(runtime.clock, JOB_CANCEL_LISTEN_AGAIN_MS, left.signal);
      }
    }
    return undefined;
  }

  async #forget(tenant: string, followed: Followed): Promise<void> {
    if (this.#tenants.get(tenant) === followed) this.#tenants.delete(tenant);
    followed.left.abort();
    await (await followed.keys)?.close();
  }
}

function apply(entered: Entered, { host, by }: CancelRequest): void {
  if (host !== undefined) return controllerOf(entered, host).abort(by);
  entered.run.abort(by);
  for (const one of entered.hosts.values()) one.abort(by);
}

/**
 * The controller of one host's signal, which also aborts with the run. `AbortSignal.any` would be slow for thousands of
 * hosts: it creates weak references, which burden the garbage collector.
 */
function controllerOf({ run, hosts }: Entered, host: string): AbortController {
  const known = hosts.get(host);
  if (known) return known;
  const controller = new AbortController();
  if (run.signal.aborted) controller.abort(run.signal.reason);
  hosts.set(host, controller);
  return controller;
}

function keyOf({ runId, host }: CancelRequest): string {
  return host === undefined ? CANCELS + runId : `${CANCELS}${runId}/${encodeURIComponent(host)}`;
}
