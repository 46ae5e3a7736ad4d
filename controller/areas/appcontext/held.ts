import { AppError } from "../../../common/errors.ts";

/** Bytes that lists hold in memory until they are sent, by tenant. */
export class HeldBytes {
  readonly #maxBytes: number;
  readonly #byTenant = new Map<string, number>();

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  share(tenant: string): HeldShare {
    return new HeldShare((bytes, share) => this.#take(tenant, bytes, share));
  }

  of(tenant: string): number {
    return this.#byTenant.get(tenant) ?? 0;
  }

  #take(tenant: string, bytes: number, share: HeldShare): void {
    const held = this.of(tenant) + bytes;
    if (bytes > 0 && share.bytes + bytes > this.#maxBytes) throw tooLarge(this.#maxBytes);
    if (bytes > 0 && held > this.#maxBytes) throw busy();
    if (held === 0) this.#byTenant.delete(tenant);
    else this.#byTenant.set(tenant, held);
  }
}

/** Bytes held by one list. */
class HeldShare {
  readonly #take: (bytes: number, share: HeldShare) => void;
  #bytes = 0;

  constructor(take: (bytes: number, share: HeldShare) => void) {
    this.#take = take;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /**
   * `AppError("too_large")` if this list alone holds too much, `AppError("limited")` if all lists of the tenant do
   * together.
   */
  take(bytes: number): void {
    this.#take(bytes, this);
    this.#bytes += bytes;
  }

  giveBack(): void {
    this.#take(-this.#bytes, this);
    this.#bytes = 0;
  }
}

const DETAILS = { details: { limit: "APPCONTEXT_LISTS_MAX_BYTES" } };

function tooLarge(maxBytes: number): AppError {
  return new AppError("too_large", `The items have more than ${maxBytes} bytes: narrow them by where.`, DETAILS);
}

function busy(): AppError {
  return new AppError("limited", "Too many items are being answered at once; come back later.", DETAILS);
}
