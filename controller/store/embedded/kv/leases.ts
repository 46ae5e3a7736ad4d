import { AppError } from "../../../../common/errors.ts";
import { KV_LEASE_MAX_MS, KV_LEASE_MIN_MS } from "../../../../common/limits.ts";
import type { Runtime } from "../../../runtime.ts";
import { encodePacked } from "../../format.ts";
import type { KvLease } from "../../kv.ts";
import type { Environment } from "../environment/environment.ts";
import { bytesText, concat, prefixEnd, textBytes, u32 } from "../bytes/keys.ts";

/** Number of renewals of a lease within its duration. */
const BEATS = 3;
const PRESENT = encodePacked(1);

export interface KvLeasesOptions {
  readonly env: Environment;
  readonly runtime: Pick<Runtime, "clock" | "random">;
  /** Removes entries and records their events. Called inside a write transaction. */
  readonly endEntries: (keys: readonly string[]) => void;
  readonly committed: () => void;
}

interface Held {
  readonly ttlMs: number;
  readonly lost: AbortController;
  deadlineMs: number;
  cancel: () => void;
}

/**
 * Leases live in the process that holds them. They are recorded on disk only to end them. If the process dies, the next
 * open ends them. If the process is paused for longer than a lease lasts (a suspended machine), it ends the lease when
 * it continues.
 */
export class KvLeases {
  readonly #options: KvLeasesOptions;
  readonly #held = new Map<string, Held>();

  constructor(options: KvLeasesOptions) {
    this.#options = options;
  }

  async grant(ttlMs: number): Promise<KvLease> {
    if (!(ttlMs >= KV_LEASE_MIN_MS && ttlMs <= KV_LEASE_MAX_MS)) {
      throw new AppError("invalid", `A lease lasts from ${KV_LEASE_MIN_MS} to ${KV_LEASE_MAX_MS} ms, not ${ttlMs}.`);
    }
    const { env, runtime } = this.#options;
    const id = Buffer.from(runtime.random.bytes(12)).toString("hex");
    await env.write(() => env.tables.kvleases.put(textBytes(id), encodePacked(ttlMs)));
    const held: Held = {
      ttlMs,
      lost: new AbortController(),
      deadlineMs: runtime.clock.monotonicMs() + ttlMs,
      cancel: () => {},
    };
    this.#held.set(id, held);
    this.#beat(id, held);
    return {
      id,
      lost: held.lost.signal,
      held: () => isHeld(held, runtime.clock.monotonicMs()),
      revoke: () => this.#end(id),
    };
  }

  /** Call it inside a write transaction, before its first write. */
  require(id: string): void {
    if (this.#options.env.tables.kvleases.get(textBytes(id)) === undefined)
      throw new AppError("not_found", `There is no lease ${id}; it may have ended.`);
  }

  bind(id: string, key: string): void {
    this.#options.env.tables.leasekeys.put(concat(leasePrefix(id), textBytes(key)), PRESENT);
  }

  unbind(id: string, key: string): void {
    this.#options.env.tables.leasekeys.remove(concat(leasePrefix(id), textBytes(key)));
  }

  /** Ends every lease on disk. Call it at open: the processes that held these leases have ended. */
  async endAll(): Promise<void> {
    const ids = [...this.#options.env.read().kvleases.getKeys({ start: Uint8Array.of(0) })].map(bytesText);
    for (const id of ids) await this.#end(id);
  }

  close(): void {
    for (const held of this.#held.values()) {
      held.cancel();
      held.lost.abort();
    }
    this.#held.clear();
  }

  #beat(id: string, held: Held): void {
    const { clock } = this.#options.runtime;
    held.cancel = clock.after(held.ttlMs / BEATS, () => {
      const nowMs = clock.monotonicMs();
      if (nowMs > held.deadlineMs) {
        // If this write fails, the next open ends the lease; the holder already knows.
        this.#end(id).catch(() => undefined);
        return;
      }
      held.deadlineMs = nowMs + held.ttlMs;
      this.#beat(id, held);
    });
  }

  async #end(id: string): Promise<void> {
    const held = this.#held.get(id);
    held?.cancel();
    held?.lost.abort();
    this.#held.delete(id);
    const { env, endEntries, committed } = this.#options;
    await env.write(() => {
      endEntries(this.#keysOf(id));
      env.tables.kvleases.remove(textBytes(id));
    }, committed);
  }

  #keysOf(id: string): readonly string[] {
    const prefix = leasePrefix(id);
    const keys = [...this.#options.env.tables.leasekeys.getKeys({ start: prefix, end: prefixEnd(prefix)! })];
    return keys.map((key) => bytesText(key.subarray(prefix.length)));
  }
}

function isHeld(held: Held, nowMs: number): boolean {
  return !held.lost.signal.aborted && nowMs <= held.deadlineMs;
}

function leasePrefix(id: string): Uint8Array {
  const bytes = textBytes(id);
  return concat(u32(bytes.length), bytes);
}
