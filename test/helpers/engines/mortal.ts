import { AsyncLocalStorage } from "node:async_hooks";
import { AppError } from "../../../common/errors.ts";
import type { Stores, TenantStore } from "../../../controller/store/engine.ts";

/** Names of calls that write, of stores and of the object database. */
const WRITES: ReadonlySet<string | symbol> = new Set([
  "put",
  "txn",
  "delete",
  "change",
  "append",
  "removeStream",
  "mark",
  "unmark",
  "insert",
  "ingest",
  "restore",
]);

/** A call in progress. */
interface Begun {
  readonly of: Mortality;
  /** The call in which it was made. */
  readonly outer: Begun | undefined;
  /** Resolves when the call has ended, or waits for a call after death: from then on it changes nothing. */
  readonly over: Promise<void>;
  readonly end: () => void;
}

/** One for all processes: every storage that was used makes all promises slower until this program ends. */
const inside = new AsyncLocalStorage<Begun>();

/**
 * A process that dies at one of its writes: this call and all later ones do not return until `bury`. A write that takes
 * effect leaves what a death before the next one leaves. So tests that try both at every second write meet every state.
 */
export class Mortality {
  /** Resolves when it is dead and its running calls have ended: from then on it changes nothing. */
  readonly died: Promise<void>;
  readonly #writes: number;
  readonly #isWritten: boolean;
  readonly #begun = new Set<Begun>();
  #count = 0;
  #isDead = false;
  #die = (): void => undefined;
  #end = (_error: Error): void => undefined;
  readonly #buried = new Promise<never>((_, reject) => (this.#end = reject));

  /** Dies at the write with this number, from 0. `isWritten`: that write still takes effect. */
  constructor(writes: number, isWritten: boolean) {
    this.#writes = writes;
    this.#isWritten = isWritten;
    this.died = new Promise<void>((resolve) => (this.#die = resolve)).then(async () => {
      await Promise.all(Array.from(this.#begun, ({ over }) => over));
    });
    this.#buried.catch(() => undefined);
  }

  /**
   * Kills it if it is alive. Then its waiting calls fail, and later ones at once: what waits for them here, as scripts
   * on shared threads, ends as it would have ended with its process.
   */
  async bury(): Promise<void> {
    this.#isDead = true;
    this.#die();
    await this.died;
    this.#end(new AppError("unavailable", "The process is dead."));
  }

  /** Wraps an object: its writes are counted, and wait for `bury` after death. */
  mortal<T extends object>(target: T, instead: Partial<T> = {}): T {
    return new Proxy(target, {
      get: (_, name) => {
        const member: unknown = Reflect.get(name in instead ? instead : target, name);
        if (typeof member !== "function") return member;
        const call = (...given: readonly unknown[]): unknown => Reflect.apply(member, target, given) as unknown;
        return WRITES.has(name) ? (...given: readonly unknown[]) => this.#write(() => call(...given)) : call;
      },
    });
  }

  /** Makes a call that is not counted. After death it waits for `bury`. */
  async call<T>(make: () => T | Promise<T>): Promise<T> {
    if (this.#isDead) return this.#wait();
    let end = (): void => undefined;
    const over = new Promise<void>((resolve) => (end = resolve));
    const begun = { of: this, outer: inside.getStore(), over, end };
    this.#begun.add(begun);
    try {
      return await inside.run(begun, make);
    } finally {
      end();
      this.#begun.delete(begun);
    }
  }

  #wait(): Promise<never> {
    for (let call = inside.getStore(); call; call = call.outer) if (call.of === this) call.end();
    return this.#buried;
  }

  async #write(write: () => unknown): Promise<unknown> {
    const at = this.#count++;
    if (at < this.#writes) return this.call(write);
    if (at === this.#writes && this.#isWritten) await this.call(write);
    this.#isDead = true;
    this.#die();
    return this.#wait();
  }
}

/**
 * The keys and objects of a process, which die together at one of its writes. `mortality` is that of its current life.
 */
export function mortalStores(
  stores: Stores,
  mortality: () => Mortality,
): { readonly keys: Stores; readonly data: Stores } {
  const storesOf = (part: (store: TenantStore) => Partial<TenantStore>): Stores => ({
    system: () => stores.system(),
    tenant: async (name) => {
      const store = await stores.tenant(name);
      return { ...store, ...part(store) };
    },
  });
  return {
    keys: storesOf(({ kv }) => ({ kv: mortality().mortal(kv) })),
    data: storesOf((store) => ({
      objects: new Proxy(store.objects, {
        get: (target, name) => Reflect.get(mortality().mortal(target), name) as unknown,
      }),
    })),
  };
}
