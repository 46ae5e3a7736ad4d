import { OBJECT_PAGE_MAX } from "../../../common/limits.ts";
import type { Stores } from "../../store/engine.ts";
import type { Growth, TenantRoom } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";

export interface SizesDependencies {
  readonly stores: Pick<Stores, "tenant">;
  readonly objects: { sizes(principal: Principal): AsyncIterable<Growth> };
  readonly actAs: (tenant: string, traceparent: string) => Promise<Principal>;
}

/** Sizes of all data of a tenant: its objects, and contents of files and depots, each counted once. */
export async function* tenantSizes(
  { stores, objects, actAs }: SizesDependencies,
  tenant: string,
): AsyncGenerator<Growth> {
  yield* objects.sizes(await actAs(tenant, ""));
  const { scrub } = await stores.tenant(tenant);
  let cursor: string | undefined;
  do {
    const page = await scrub.contents({ limit: OBJECT_PAGE_MAX, ...(cursor !== undefined && { cursor }) });
    yield { objects: 0, bytes: page.items.reduce((bytes, { size }) => bytes + size, 0) };
    cursor = page.cursor;
  } while (cursor !== undefined);
}

/** Stores a content if there is room; `keep` reads the given bytes. */
export async function keepInRoom<T>(
  { room, tenant }: { readonly room: TenantRoom | undefined; readonly tenant: string },
  bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  keep: (bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>) => Promise<T>,
): Promise<T> {
  if (!room?.isLimited(tenant)) return keep(bytes);
  let taken = 0;
  const taking = async function* (): AsyncGenerator<Uint8Array> {
    for await (const part of bytes) {
      await room.take(tenant, { objects: 0, bytes: part.byteLength });
      taken += part.byteLength;
      yield part;
    }
  };
  try {
    return await keep(taking());
  } catch (error) {
    room.count(tenant, { objects: 0, bytes: -taken });
    throw error;
  }
}
