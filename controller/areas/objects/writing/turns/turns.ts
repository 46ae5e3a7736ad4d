import { createHash } from "node:crypto";
import { AppError, isAppError } from "../../../../../common/errors.ts";
import { OBJECT_TURN_WAIT_MS } from "../../../../../common/limits.ts";
import type { Runtime } from "../../../../runtime.ts";
import { entriesUnder } from "../../../../store/kv/entries.ts";
import { encodeJson } from "../../../../store/format.ts";
import type { KvEntry, KvStore } from "../../../../store/kv.ts";
import type { Retry } from "../../../../store/calls/retry.ts";
import type { Held } from "../../definitions/catalog.ts";

/**
 * Prefix of one entry for each write that waits or has its turn, by object. The entry is under the lease of the write's
 * controller.
 */
const TURNS_PREFIX = "objectturns/";

interface TurnsDependencies {
  readonly kv: KvStore;
  readonly runtime: Runtime;
  readonly retry: Retry;
}

type Leased = Pick<Held, "lease" | "isHeld">;

/** The lease that a write began with, and the way to get another one. */
interface TurnLease {
  readonly held: Leased;
  readonly resumed: () => Promise<Leased>;
}

/**
 * Turns of controllers at an object, for writes whose values depend on what they read. Turns come in the order in which
 * their entries were created.
 */
export class ObjectTurns {
  readonly #kv: KvStore;
  readonly #runtime: Runtime;
  readonly #retry: Retry;

  constructor(of: TurnsDependencies) {
    this.#kv = of.kv;
    this.#runtime = of.runtime;
    this.#retry = of.retry;
  }

  /**
   * Runs the work while no other controller has a turn at the object. `AppError("unavailable")` if other turns take
   * longer than `OBJECT_TURN_WAIT_MS`; `unknown_outcome` if the lease was lost before the work ended.
   */
  async run<T>(object: string, by: TurnLease, work: () => Promise<T>): Promise<T> {
    const held = by.held.isHeld() ? by.held : await by.resumed();
    const prefix = `${TURNS_PREFIX}${createHash("sha256").update(object).digest("base64url")}/`;
    const key = `${prefix}${Buffer.from(this.#runtime.random.bytes(12)).toString("hex")}`;
    try {
      await this.#retry.run(() => this.#kv.put(key, encodeJson({}), { lease: held.lease }));
      await this.#come(prefix, key);
      const result = await work();
      if (held.isHeld()) return result;
    } finally {
      await this.#end(key);
    }
    throw new AppError(
      "unknown_outcome",
      "This controller was stopped while it wrote: whether the write stands is not known.",
    );
  }

  async #come(prefix: string, key: string): Promise<void> {
    const late = new AbortController();
    const cancel = this.#runtime.clock.after(OBJECT_TURN_WAIT_MS, () => late.abort());
    try {
      while (!late.signal.aborted) {
        const before = await this.#before(prefix, key);
        if (before === undefined) return;
        await this.#gone(before, late.signal);
      }
    } finally {
      cancel();
    }
    throw new AppError(
      "unavailable",
      "Too many controllers write this object at once: nothing was written, try again.",
      {
        details: { limit: "OBJECT_TURN_WAIT_MS" },
      },
    );
  }

  /** The latest entry that was created before this one; undefined if this one is the first. */
  #before(prefix: string, key: string): Promise<KvEntry | undefined> {
    return this.#retry.run(async () => {
      const entries: KvEntry[] = [];
      for await (const entry of entriesUnder(this.#kv, prefix)) entries.push(entry);
      const own = entries.find((entry) => entry.key === key);
      if (!own) throw new AppError("unavailable", "This controller was stopped before it wrote: try again.");
      return entries
        .filter(({ createRevision }) => createRevision < own.createRevision)
        .reduce<KvEntry | undefined>((last, entry) => {
          return last === undefined || entry.createRevision > last.createRevision ? entry : last;
        }, undefined);
    });
  }

  async #gone({ key, revision }: KvEntry, signal: AbortSignal): Promise<void> {
    try {
      for await (const events of this.#kv.watch(key, { sinceRevision: revision, signal })) {
        if (events.some((event) => event.kind === "delete")) return;
      }
    } catch (error) {
      if (!isAppError(error, "compacted")) throw error;
    }
  }

  async #end(key: string): Promise<void> {
    try {
      await this.#retry.run(() => this.#kv.delete(key));
    } catch (error) {
      // The entry ends with the lease.
      if (!(error instanceof AppError)) throw error;
    }
  }
}
