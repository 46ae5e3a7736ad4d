import { AppError } from "../../../common/errors.ts";
import {
  HTTP_BODY_MEMORY_DEFAULT_MIB,
  HTTP_BODY_MEMORY_OF_CALLER,
  HTTP_BODY_MEMORY_OF_TENANT,
  HTTP_BODY_MEMORY_RETRY_SECONDS,
  HTTP_STRANGER_FREE_BYTES,
} from "../../../common/limits.ts";
import { networkOf } from "../../settings/network.ts";

const MIB = 1_048_576;

/** The caller of a call, once it is signed in. */
interface BodyOwner {
  readonly tenant: string;
  readonly user: string;
}

/** Memory that the bodies of several calls use together. */
interface Share {
  readonly name: string;
  readonly maxBytes: number;
  bytes: number;
  /** Number of calls that use this share. */
  calls: number;
}

interface Shares {
  readonly caller: Share;
  readonly tenant: Share;
  /** First bytes of each call, which the tenant's share does not count. */
  readonly freeBytes: number;
}

/**
 * Limits the memory for the bodies of calls in this process, in their decoded form. A caller may use the fraction
 * `HTTP_BODY_MEMORY_OF_CALLER` of it, and a tenant `HTTP_BODY_MEMORY_OF_TENANT`. A caller who is not signed in is
 * identified by address; together, these callers may use as much as one tenant. The first `HTTP_STRANGER_FREE_BYTES` of
 * each of their calls count only for the address, so that large bodies of strangers cannot keep others from signing in.
 */
export class BodyMemory {
  readonly #process: Share;
  readonly #shares = new Map<string, Share>();

  readonly #place: Place;

  constructor(maxMib = HTTP_BODY_MEMORY_DEFAULT_MIB) {
    this.#process = { name: "all callers", maxBytes: maxMib * MIB, bytes: 0, calls: 0 };
    this.#place = {
      process: this.#process,
      enter: (remote, owner) => this.#enter(remote, owner),
      leave: (shares) => this.#leave(shares),
    };
  }

  /** Bytes in use, for metrics. */
  get bytes(): number {
    return this.#process.bytes;
  }

  /** Number of shares of callers and tenants in use; 0 if no call uses memory. */
  get shareCount(): number {
    return this.#shares.size;
  }

  /** The memory of one call from that address. Nothing of it is used yet. */
  open(remote: string): CallMemory {
    return new CallMemory(this.#place, remote);
  }

  #enter(remote: string, owner: BodyOwner | undefined): Shares {
    const [caller, tenant] =
      owner === undefined
        ? [`the address ${networkOf(remote)}`, "all callers who are not signed in"]
        : [`the user ${owner.user} of ${owner.tenant}`, `the tenant ${owner.tenant}`];
    const { maxBytes } = this.#process;
    return {
      caller: this.#share(caller, maxBytes * HTTP_BODY_MEMORY_OF_CALLER),
      tenant: this.#share(tenant, maxBytes * HTTP_BODY_MEMORY_OF_TENANT),
      freeBytes: owner === undefined ? HTTP_STRANGER_FREE_BYTES : 0,
    };
  }

  #share(name: string, maxBytes: number): Share {
    let share = this.#shares.get(name);
    if (share === undefined) this.#shares.set(name, (share = { name, maxBytes, bytes: 0, calls: 0 }));
    share.calls++;
    return share;
  }

  #leave({ caller, tenant }: Shares): void {
    for (const share of [caller, tenant]) if (--share.calls === 0) this.#shares.delete(share.name);
  }
}

/** Access of calls to the shares that they use. */
interface Place {
  readonly process: Share;
  readonly enter: (remote: string, owner: BodyOwner | undefined) => Shares;
  readonly leave: (shares: Shares) => void;
}

/** Memory that the body of one call uses, from its first byte to the end of the call. */
export class CallMemory {
  readonly #place: Place;
  readonly #remote: string;
  #owner: BodyOwner | undefined;
  /** Absent while nothing is used. */
  #shares: Shares | undefined;
  #bytes = 0;
  #isOver = false;

  constructor(place: Place, remote: string) {
    this.#place = place;
    this.#remote = remote;
  }

  /**
   * Takes that many more bytes; a negative number gives bytes back. `AppError("limited")`, and no change, if a share is
   * used up. `AppError("too_large")` if this call alone needs more than the share of its caller.
   */
  hold(bytes: number): void {
    if (this.#isOver || bytes === 0) return;
    const shares = this.#entered();
    if (bytes > 0) this.#require(shares, bytes);
    this.#add(shares, bytes);
    this.#place.process.bytes += bytes;
    this.#bytes += bytes;
  }

  /** True if there is room for that many more bytes. */
  fits(bytes: number): boolean {
    if (this.#isOver) return true;
    return this.#fullWith(this.#entered(), bytes) === undefined;
  }

  /**
   * Sets the caller. Bytes in use move to the shares of the caller and of its tenant. `AppError("limited")`, and no
   * move, if they do not fit there.
   */
  ownedBy(owner: BodyOwner): void {
    if (this.#owner?.tenant === owner.tenant && this.#owner.user === owner.user) return;
    const before = this.#shares;
    if (before !== undefined && !this.#isOver) this.#move(before, owner);
    this.#owner = owner;
  }

  /** Gives everything back. After that, `hold` has no effect. */
  release(): void {
    this.#isOver = true;
    const shares = this.#shares;
    if (shares === undefined) return;
    this.#add(shares, -this.#bytes);
    this.#place.process.bytes -= this.#bytes;
    this.#bytes = 0;
    this.#shares = undefined;
    this.#place.leave(shares);
  }

  #entered(): Shares {
    return (this.#shares ??= this.#place.enter(this.#remote, this.#owner));
  }

  #move(before: Shares, owner: BodyOwner): void {
    const after = this.#place.enter(this.#remote, owner);
    const full = [after.caller, after.tenant].find((share) => share.bytes + this.#bytes > share.maxBytes);
    if (full !== undefined) {
      this.#place.leave(after);
      throw limited(full);
    }
    this.#add(before, -this.#bytes);
    after.caller.bytes += this.#bytes;
    after.tenant.bytes += countedOf(after, this.#bytes);
    this.#place.leave(before);
    this.#shares = after;
  }

  #require(shares: Shares, bytes: number): void {
    if (this.#bytes + bytes > shares.caller.maxBytes) throw tooLarge(shares.caller);
    const full = this.#fullWith(shares, bytes);
    if (full !== undefined) throw limited(full);
  }

  /** The first share without room for that many more bytes. */
  #fullWith(shares: Shares, bytes: number): Share | undefined {
    const { caller, tenant } = shares;
    const parts = [
      [caller, bytes],
      [tenant, this.#countedMore(shares, bytes)],
      [this.#place.process, bytes],
    ] as const;
    return parts.find(([share, more]) => more > 0 && share.bytes + more > share.maxBytes)?.[0];
  }

  /** Changes the shares by bytes that `#bytes` does not include yet. */
  #add(shares: Shares, bytes: number): void {
    shares.caller.bytes += bytes;
    shares.tenant.bytes += this.#countedMore(shares, bytes);
  }

  #countedMore(shares: Shares, bytes: number): number {
    return countedOf(shares, this.#bytes + bytes) - countedOf(shares, this.#bytes);
  }
}

/** The part of a call's bytes that counts for its tenant's share. */
function countedOf({ freeBytes }: Shares, bytes: number): number {
  return Math.max(0, bytes - freeBytes);
}

function limited({ name, maxBytes }: Share): AppError {
  return new AppError(
    "limited",
    `The bodies of calls that ${name} sent fill the ${String(maxBytes / MIB)} MiB of memory there are for them. Come back later.`,
    { details: { limit: "body_memory_mib", maxBytes, retryAfterSeconds: HTTP_BODY_MEMORY_RETRY_SECONDS } },
  );
}

function tooLarge({ maxBytes }: Share): AppError {
  return new AppError(
    "too_large",
    `Decoded, the body needs more than the ${String(maxBytes / MIB)} MiB of memory that one caller has. ` +
      "Send it in several calls, or ask the operator to raise the setting body_memory_mib.",
    { details: { limit: "body_memory_mib", maxBytes } },
  );
}
