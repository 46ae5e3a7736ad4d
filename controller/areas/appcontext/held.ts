import { AppError } from "../../../common/errors.ts";

/** What lists hold in memory until they are sent, by tenant. */
export class HeldBytes {
  readonly #maxBytes: number;
  readonly #byTenant = new Map<string, number>();

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  share(tenant: string): HeldShare {
    return new HeldShare((bytes) => this.#take(tenant, bytes));
  }

  of(tenant: string): number {
    return this.#byTenant.get(tenant) ?? 0;
  }

  #take(tenant: string, bytes: number): void {
    const held = this.of(tenant) + bytes;
    if (bytes > 0 && held > this.#maxBytes) throw tooMuch(this.#maxBytes);
    if (held === 0) this.#byTenant.delete(tenant);
    else this.#byTenant.set(tenant, held);
  }
}

/** The part of one list. */
class HeldShare {
  readonly #take: (bytes: number) => void;
  #bytes = 0;

  constructor(take: (bytes: number) => void) {
    this.#take = take;
  }

  /** `AppError("too_large")` when the tenant's lists hold too much together. */
  take(bytes: number): void {
    this.#take(bytes);
    this.#bytes += bytes;
  }

  giveBack(): void {
    this.#take(-this.#bytes);
    this.#bytes = 0;
  }
}

function tooMuch(maxBytes: number): AppError {
  const text = `The lists of items that are being answered have more than ${maxBytes} bytes together: narrow them by where.`;
  return new AppError("too_large", text, { details: { limit: "APPCONTEXT_LISTS_MAX_BYTES" } });
}
