import { errorText, isAppError } from "../../../common/errors.ts";
import { USER_WATCH_AGAIN_MS } from "../../../common/limits.ts";
import { wait } from "../../../common/time.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import type { KvEvent, KvStore } from "../../store/kv.ts";
import { SIGN_IN_POLICY } from "./second-factor/pending-requirements.ts";
import { signInOf, SIGN_INS, USERS } from "./store.ts";
import { ORGANIZATIONS } from "./directory/tree-store.ts";

/** A changed user. Without `user`, any user of the tenant may have changed. */
export interface ChangedUser {
  readonly tenant: string;
  readonly user?: string;
  /** Digest of a session or token that ended. */
  readonly digest?: string;
}

interface Watched {
  readonly name: string;
  readonly prefix: string;
  readonly kv: () => Promise<KvStore>;
  readonly tell: (event: KvEvent) => void;
  /** Called when changes may have been missed, such as at the start of the watch. */
  readonly missed: () => void;
}

interface ChangesOptions {
  readonly stores: Stores;
  readonly runtime: Runtime;
  /** Called for every change, made on this or on another controller. */
  readonly told: (change: ChangedUser) => void;
  /** Called when sessions may have ended unnoticed. */
  readonly missed: () => void;
}

/**
 * Watches sessions and tokens of all tenants, from `start` to `stop`. Also watches users, organisations and sign-in
 * policies of the tenants that this controller used. If a watch breaks, changes may be missed, so everything is
 * reported as changed.
 */
export class UserChanges {
  readonly #options: ChangesOptions;
  readonly #watches = new Map<string, Promise<void>>();
  readonly #tenants = new Set<string>();
  #stop: AbortController | undefined;

  constructor(options: ChangesOptions) {
    this.#options = options;
  }

  start(): void {
    this.#stop ??= new AbortController();
    const { stores, told, missed } = this.#options;
    this.#follow({
      name: SIGN_INS,
      prefix: SIGN_INS,
      kv: async () => (await stores.system()).kv,
      tell: (event) => {
        const ended = event.kind === "delete" ? signInOf(event.key) : undefined;
        if (ended !== undefined) told({ tenant: ended.tenant, user: ended.username, digest: ended.digest });
      },
      missed: () => {
        missed();
        for (const tenant of this.#tenants) told({ tenant });
      },
    });
  }

  /** Starts to watch a tenant, unless it is watched already. */
  follow(tenant: string): void {
    const { stores, told } = this.#options;
    const name = `${USERS}${tenant}`;
    if (this.#stop === undefined || this.#watches.has(name)) return;
    this.#tenants.add(tenant);
    const common = { kv: async () => (await stores.tenant(tenant)).kv, missed: () => told({ tenant }) };
    this.#follow({
      ...common,
      name,
      prefix: USERS,
      tell: (event) => told({ tenant, user: (event.kind === "put" ? event.entry.key : event.key).slice(USERS.length) }),
    });
    for (const prefix of [SIGN_IN_POLICY, ORGANIZATIONS])
      this.#follow({ ...common, name: `${prefix}/${tenant}`, prefix, tell: () => told({ tenant }) });
  }

  async stop(): Promise<void> {
    this.#stop?.abort();
    this.#stop = undefined;
    await Promise.all(this.#watches.values());
  }

  #follow(watched: Watched): void {
    const signal = this.#stop?.signal;
    if (signal === undefined || this.#watches.has(watched.name)) return;
    this.#watches.set(
      watched.name,
      this.#watch(watched, signal).finally(() => this.#watches.delete(watched.name)),
    );
  }

  async #watch(watched: Watched, signal: AbortSignal): Promise<void> {
    const { runtime } = this.#options;
    let isBegun = false;
    while (!signal.aborted) {
      try {
        const kv = await watched.kv();
        const { revision } = await kv.list(watched.prefix, { limit: 1 });
        isBegun = true;
        watched.missed();
        for await (const events of kv.watch(watched.prefix, { sinceRevision: revision, signal }))
          for (const event of events) watched.tell(event);
      } catch (error) {
        // The tenant was deleted. Report it only if the watch had begun. Otherwise every later read would start a new
        // watch, which would report again.
        if (isAppError(error, "not_found")) return isBegun ? watched.missed() : undefined;
        if (!isAppError(error, "compacted") && !signal.aborted)
          runtime.log.warn({ reason: errorText(error), prefix: watched.prefix }, "a watch of users broke");
      }
      await wait(runtime.clock, USER_WATCH_AGAIN_MS, signal);
    }
  }
}
