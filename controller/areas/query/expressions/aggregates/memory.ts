import { AppError } from "../../../../../common/errors.ts";
import { QUERY_MEMORY_MAX_BYTES, QUERY_TENANT_MEMORY_MAX_BYTES } from "../../../../../common/limits.ts";
import type { Value } from "../../../../../common/value.ts";
import { isList } from "../literal.ts";

/** Estimated bytes of an empty list, map or row, and of each text. */
const CONTAINER_BYTES = 64;
const TEXT_BYTES = 24;
const SCALAR_BYTES = 8;

/** Estimated memory of queries that group, sort, join or look for distinct rows, by tenant and in total. */
export class QueryMemory {
  readonly #byTenant = new Map<string, number>();
  readonly #maxBytes: number;
  readonly #tenantMaxBytes: number;
  #bytes = 0;

  constructor(limits: { readonly maxBytes: number; readonly tenantMaxBytes: number }) {
    this.#maxBytes = limits.maxBytes;
    this.#tenantMaxBytes = limits.tenantMaxBytes;
  }

  share(tenant: string): MemoryShare {
    return new MemoryShare(this, tenant);
  }

  /**
   * `own`: bytes that the query would hold then. `AppError("too_large")` if that alone is too much, `limited` if it is
   * too much together with other queries.
   */
  take(tenant: string, bytes: number, own: number): void {
    const held = (this.#byTenant.get(tenant) ?? 0) + bytes;
    if (own > this.#tenantMaxBytes) throw tooLarge(this.#tenantMaxBytes);
    if (held > this.#tenantMaxBytes)
      throw busy(`The queries of ${tenant} hold`, {
        maxBytes: this.#tenantMaxBytes,
        limit: "QUERY_TENANT_MEMORY_MAX_BYTES",
      });
    if (this.#bytes + bytes > this.#maxBytes)
      throw busy("All queries together hold", { maxBytes: this.#maxBytes, limit: "QUERY_MEMORY_MAX_BYTES" });
    this.#bytes += bytes;
    this.#byTenant.set(tenant, held);
  }

  free(tenant: string, bytes: number): void {
    const held = (this.#byTenant.get(tenant) ?? 0) - bytes;
    this.#bytes -= bytes;
    if (held > 0) this.#byTenant.set(tenant, held);
    else this.#byTenant.delete(tenant);
  }

  /** Bytes held by all queries. */
  get bytes(): number {
    return this.#bytes;
  }
}

/** The share of one query. */
export class MemoryShare {
  readonly #memory: QueryMemory;
  readonly #tenant: string;
  #bytes = 0;

  constructor(memory: QueryMemory, tenant: string) {
    this.#memory = memory;
    this.#tenant = tenant;
  }

  take(bytes: number): void {
    this.#memory.take(this.#tenant, bytes, this.#bytes + bytes);
    this.#bytes += bytes;
  }

  free(bytes: number): void {
    this.#memory.free(this.#tenant, bytes);
    this.#bytes -= bytes;
  }

  /** Frees what is still held. */
  close(): void {
    this.free(this.#bytes);
  }
}

/** Memory of all queries of this process. */
export const PROCESS_MEMORY = new QueryMemory({
  maxBytes: QUERY_MEMORY_MAX_BYTES,
  tenantMaxBytes: QUERY_TENANT_MEMORY_MAX_BYTES,
});

/** Passes the pages on. Frees their memory when the pages end or the consumer stops. */
export async function* freeing<T>(share: MemoryShare, pages: AsyncIterable<T>): AsyncIterable<T> {
  try {
    yield* pages;
  } finally {
    share.close();
  }
}

/** Estimated bytes of a value in memory. */
export function bytesOf(value: Value | undefined): number {
  if (typeof value === "string") return TEXT_BYTES + value.length;
  if (typeof value !== "object" || value === null) return SCALAR_BYTES;
  if (isList(value)) return value.reduce<number>((bytes, element) => bytes + bytesOf(element), CONTAINER_BYTES);
  let bytes = CONTAINER_BYTES;
  for (const name in value) bytes += SCALAR_BYTES + bytesOf(value[name]);
  return bytes;
}

function tooLarge(maxBytes: number): AppError {
  return new AppError(
    "too_large",
    `[Exec] The query would hold more than ${maxBytes} bytes: narrow it by WHERE, or ask for fewer fields.`,
    {
      details: { limit: "QUERY_TENANT_MEMORY_MAX_BYTES" },
    },
  );
}

function busy(who: string, { maxBytes, limit }: { readonly maxBytes: number; readonly limit: string }): AppError {
  return new AppError("limited", `[Exec] ${who} ${maxBytes} bytes already, as much as they may: try again later.`, {
    details: { limit },
  });
}
