import { SIGN_IN_CACHE_MS } from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import type { EvidenceList } from "../../store/evidence.ts";
import { FollowedKeys } from "../../store/kv/follow.ts";
import type { KvEntry } from "../../store/kv.ts";
import { Definitions } from "./definitions.ts";
import { REFRESH_KEY, REVISION_KEY, type GroupStore } from "./store.ts";

/** A possible change of one tenant's definitions. */
export interface ToldChange {
  /** True if all cached data of the tenant must be dropped. */
  readonly isRefresh: boolean;
}

/**
 * Cache of the current definitions of one tenant. A watch reports changes by other controllers. The watch may be late
 * or broken, so a cached answer is used for `SIGN_IN_CACHE_MS` at most. Then the cache compares its revision with the
 * store. If the store does not answer, `read` fails; it never returns older definitions.
 */
export class CurrentDefinitions {
  readonly #store: GroupStore;
  readonly #runtime: Runtime;
  readonly #tenant: string;
  readonly #told: (change: ToldChange) => void;
  #known: Definitions | undefined;
  #untilMs = -Infinity;
  /** Revision of the latest refresh that the watch reported. */
  #refreshed = 0;
  /** Counts the calls of `doubt`: reads that began before the latest one are not cached. */
  #doubts = 0;
  #reading: { readonly doubts: number; readonly work: Promise<Definitions> } | undefined;
  #watch: Promise<FollowedKeys> | undefined;

  /** `told` is called if this or another controller changed the definitions or asked for a refresh. */
  constructor(of: {
    readonly store: GroupStore;
    readonly runtime: Runtime;
    readonly tenant: string;
    readonly told: (change: ToldChange) => void;
  }) {
    this.#told = of.told;
    this.#store = of.store;
    this.#runtime = of.runtime;
    this.#tenant = of.tenant;
  }

  async read(evidence?: EvidenceList): Promise<Definitions> {
    const definitions = await this.#read();
    evidence?.push({ isCurrent: (nowMs) => this.#known === definitions && nowMs < this.#untilMs });
    return definitions;
  }

  async #read(): Promise<Definitions> {
    if (this.#known !== undefined && this.#runtime.clock.monotonicMs() < this.#untilMs) return this.#known;
    await (this.#watch ??= this.#follow());
    return this.#readOnce();
  }

  /** Makes all reads that begin after this call ask the store. */
  doubt(): void {
    this.#doubts++;
    this.#untilMs = -Infinity;
  }

  /** Drops everything cached, including compiled rights. */
  drop(): void {
    this.#known = undefined;
    this.doubt();
  }

  async close(): Promise<void> {
    const followed = await this.#watch?.catch(() => undefined);
    await followed?.close();
  }

  /** Concurrent calls share one read, unless `doubt` was called after it began. */
  #readOnce(): Promise<Definitions> {
    const doubts = this.#doubts;
    if (this.#reading?.doubts !== doubts) {
      const work = this.#readNow(doubts).finally(() => {
        if (this.#reading?.work === work) this.#reading = undefined;
      });
      this.#reading = { doubts, work };
    }
    return this.#reading.work;
  }

  async #readNow(doubts: number): Promise<Definitions> {
    const untilMs = this.#runtime.clock.monotonicMs() + SIGN_IN_CACHE_MS;
    const known = this.#known;
    const isNewest = known !== undefined && known.stored.revision === (await this.#store.revision(this.#tenant));
    const definitions = isNewest ? known : new Definitions(await this.#store.load(this.#tenant));
    if (this.#doubts !== doubts) return definitions;
    this.#known = definitions;
    this.#untilMs = untilMs;
    return definitions;
  }

  async #follow(): Promise<FollowedKeys> {
    try {
      const tell = (change: ToldChange): void => {
        if (change.isRefresh) this.drop();
        else this.doubt();
        this.#told(change);
      };
      const put = ({ key, revision }: KvEntry): void => {
        const isRefresh = key === REFRESH_KEY && revision > this.#refreshed;
        if (isRefresh) this.#refreshed = revision;
        tell({ isRefresh });
      };
      const kv = await this.#store.kv(this.#tenant);
      const end = (): void => tell({ isRefresh: false });
      const followed = new FollowedKeys({ kv, prefix: REVISION_KEY, runtime: this.#runtime, put, end });
      await followed.start();
      return followed;
    } catch (error) {
      this.#watch = undefined;
      throw error;
    }
  }
}
