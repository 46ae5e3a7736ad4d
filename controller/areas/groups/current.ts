import { SIGN_IN_CACHE_MS } from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import { FollowedKeys } from "../../store/follow.ts";
import type { KvEntry } from "../../store/kv.ts";
import { Definitions } from "./definitions.ts";
import { REFRESH_KEY, REVISION_KEY, type GroupStore } from "./store.ts";

/** What may have changed of one tenant. */
export interface ToldChange {
  /** Nothing of the tenant that is kept in memory may be used any more. */
  readonly isRefresh: boolean;
}

/**
 * The definitions of one tenant as they are now. A change that another controller makes is told by a watch; beside it
 * the store is asked whether they are still the newest, so that what is answered is never older than
 * `SIGN_IN_CACHE_MS`, also where the watch is late or broken. What cannot be read is an error, never an older state.
 */
export class CurrentDefinitions {
  readonly #store: GroupStore;
  readonly #runtime: Runtime;
  readonly #tenant: string;
  readonly #told: (change: ToldChange) => void;
  #known: Definitions | undefined;
  #untilMs = -Infinity;
  /** Of the latest refresh that was heard of. */
  #refreshed = 0;
  /** Rises when what is known may have become old. */
  #doubts = 0;
  #reading: { readonly doubts: number; readonly work: Promise<Definitions> } | undefined;
  #watch: Promise<FollowedKeys> | undefined;

  /** `told` is called when another controller, or this one, changed the definitions, or had them read anew. */
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

  async read(): Promise<Definitions> {
    if (this.#known !== undefined && this.#runtime.clock.monotonicMs() < this.#untilMs) return this.#known;
    await (this.#watch ??= this.#follow());
    return this.#readOnce();
  }

  /** What is asked for after this call is read anew. */
  doubt(): void {
    this.#doubts++;
    this.#untilMs = -Infinity;
  }

  /** Drops all that is kept, compiled rights included. */
  drop(): void {
    this.#known = undefined;
    this.doubt();
  }

  async close(): Promise<void> {
    const followed = await this.#watch?.catch(() => undefined);
    await followed?.close();
  }

  /** Those who ask at the same time share one read, unless something changed after it began. */
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
