import { EtcdLeaseInvalidError } from "etcd3";
import { AppError, isAppError } from "../../../../common/errors.ts";
import { KV_LEASE_MAX_MS, KV_LEASE_MIN_MS } from "../../../../common/limits.ts";
import { wait } from "../../../../common/time.ts";
import type { KvLease } from "../../kv.ts";
import type { Etcd } from "./etcd.ts";

const RETRY_PAUSE_MS = 100;

/** Requests a lease and keeps it alive. A lease without keys has no effect, so a lost answer counts as no lease. */
export async function grantLease(etcd: Etcd, ttlMs: number): Promise<EtcdLease> {
  if (!(ttlMs >= KV_LEASE_MIN_MS && ttlMs <= KV_LEASE_MAX_MS)) {
    throw new AppError("invalid", `A lease lasts from ${KV_LEASE_MIN_MS} to ${KV_LEASE_MAX_MS} ms.`);
  }
  let sentMs = 0;
  const answer = await etcd.call("read", (call) => {
    sentMs = etcd.runtime.clock.monotonicMs();
    return etcd.leases.leaseGrant({ TTL: Math.ceil(ttlMs / 1000) }, call);
  });
  return new EtcdLease(etcd, { id: answer.ID, ttlMs, sentMs });
}

/**
 * A lease that counts its own time: it is lost `ttlMs`, less a margin, after the *sending* of the last request that
 * etcd answered. etcd starts counting later, so no other client sees the lease expire before its holder does. (`etcd3`
 * itself reports the loss up to one ttl late.)
 */
export class EtcdLease implements KvLease {
  readonly id: string;
  readonly #etcd: Etcd;
  readonly #ttlMs: number;
  readonly #lost = new AbortController();
  #cancelExpiry: () => void = () => undefined;
  #endsMs = 0;

  constructor(etcd: Etcd, granted: { readonly id: string; readonly ttlMs: number; readonly sentMs: number }) {
    this.id = granted.id;
    this.#etcd = etcd;
    this.#ttlMs = granted.ttlMs;
    this.#expireAfter(granted.sentMs);
    void this.#keepAlive();
  }

  get lost(): AbortSignal {
    return this.#lost.signal;
  }

  held(): boolean {
    return !this.lost.aborted && this.#etcd.runtime.clock.monotonicMs() < this.#endsMs;
  }

  async revoke(): Promise<void> {
    this.abandon();
    try {
      await this.#etcd.call("write", (call) => this.#etcd.leases.leaseRevoke({ ID: this.id }, call));
    } catch (error) {
      // A lease that etcd does not know has already ended.
      if (!isAppError(error, "not_found")) throw error;
    }
  }

  /** Treats the lease as lost, and lets it expire in etcd. */
  abandon(): void {
    this.#cancelExpiry();
    this.#lost.abort();
  }

  async #keepAlive(): Promise<void> {
    const { clock } = this.#etcd.runtime;
    const intervalMs = this.#ttlMs / 3;
    let pauseMs = intervalMs;
    for (;;) {
      await wait(clock, pauseMs, this.lost);
      if (this.lost.aborted) return;
      const sentMs = clock.monotonicMs();
      const alive = await this.#renew(intervalMs).catch(() => undefined);
      if (this.lost.aborted) return;
      if (alive === false) return this.abandon();
      if (alive === true) this.#expireAfter(sentMs);
      pauseMs = alive === true ? intervalMs : RETRY_PAUSE_MS;
    }
  }

  /** Returns false if etcd no longer knows the lease. */
  async #renew(limitMs: number): Promise<boolean> {
    const { stream, end, giveUp } = await this.#etcd.open(() => this.#etcd.leases.leaseKeepAlive());
    const stopTimer = this.#etcd.runtime.clock.after(limitMs, giveUp);
    try {
      return await new Promise<boolean>((resolve, reject) => {
        stream.on("data", (answer) => resolve(Number(answer.TTL) > 0));
        stream.on("error", (error) => (error instanceof EtcdLeaseInvalidError ? resolve(false) : reject(error)));
        stream.on("close", () => reject(new Error("etcd ended the stream")));
        stream.write({ ID: this.id });
      });
    } finally {
      stopTimer();
      end();
    }
  }

  #expireAfter(sentMs: number): void {
    this.#cancelExpiry();
    const { clock } = this.#etcd.runtime;
    const marginMs = Math.max(100, this.#ttlMs / 10);
    this.#endsMs = sentMs + this.#ttlMs - marginMs;
    const leftMs = Math.max(0, this.#endsMs - clock.monotonicMs());
    this.#cancelExpiry = clock.after(leftMs, () => this.abandon());
  }
}
