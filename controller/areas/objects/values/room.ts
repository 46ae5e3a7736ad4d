import type { EntityChange, Entity, StoredRecord } from "../../../store/objects.ts";
import type { LoadedClass } from "../definitions/views.ts";

/** Growth of a tenant by a write. It is negative if the write removes more than it adds. Bytes are those of values. */
export interface Growth {
  readonly objects: number;
  readonly bytes: number;
}

/** Quota of a tenant for objects of its own classes. */
export interface TenantRoom {
  /** False: nothing is counted, and no write is refused. */
  isLimited(tenant: string): boolean;
  /** Counts what is about to be written. `AppError("too_large")` names the quota that has no room for it. */
  take(tenant: string, growth: Growth): Promise<void>;
  /** Like `take`, but counts nothing. */
  require(tenant: string, growth: Growth): Promise<void>;
  /** Counts growth and never refuses it. To undo `take`, pass the growth with its signs inverted. */
  count(tenant: string, growth: Growth): void;
}

/** Quota for the writes of one call. Absent without a quota. */
export interface WriteRoom {
  take(growth: Growth): Promise<void>;
  require(growth: Growth): Promise<void>;
  count(growth: Growth): void;
}

export const NO_GROWTH: Growth = { objects: 0, bytes: 0 };

/** Makes the write if the quota has room. Classes of the platform have no quota, because their owners limit them. */
export function inRoom(
  room: WriteRoom | undefined,
  of: { readonly view: LoadedClass; readonly growth: () => Growth },
  write: () => Promise<void>,
): Promise<void> {
  return room === undefined || of.view.system ? write() : taking(room, of.growth(), write);
}

async function taking(room: WriteRoom, growth: Growth, write: () => Promise<void>): Promise<void> {
  await room.take(growth);
  try {
    await write();
  } catch (error) {
    // If the write was made after all, the next count of the tenant includes it.
    room.count(less(growth));
    throw error;
  }
}

/** Checks the quota for a call of several batches before its first batch, so that it is not refused between two. */
export async function requireRoom(room: WriteRoom | undefined, view: LoadedClass, growth: Growth): Promise<void> {
  if (!view.system) await room?.require(growth);
}

export function sumOf(growths: Iterable<Growth>): Growth {
  let objects = 0;
  let bytes = 0;
  for (const growth of growths) {
    objects += growth.objects;
    bytes += growth.bytes;
  }
  return { objects, bytes };
}

export function less({ objects, bytes }: Growth): Growth {
  return { objects: -objects, bytes: -bytes };
}

/** Growth of an object by a change. `before` is absent for a new object. */
export function changeGrowth({ cells, birth }: EntityChange, before: Entity | undefined): Growth {
  let bytes = 0;
  for (const [key, value] of cells ?? [])
    bytes += (value?.byteLength ?? 0) - (before?.cells.get(key)?.value.byteLength ?? 0);
  return { objects: before === undefined && birth === true ? 1 : 0, bytes };
}

export function entitySize({ cells }: Entity): Growth {
  let bytes = 0;
  for (let place = 0; place < cells.keys.length; place++) bytes += cells.end(place) - cells.start(place);
  return { objects: 1, bytes };
}

export function recordSize({ value }: StoredRecord): Growth {
  return { objects: 1, bytes: value.byteLength };
}

/** The quota for a call. An admitted write is counted, but never refused. */
export function roomOf(room: TenantRoom | undefined, tenant: string, isAdmitted: boolean): WriteRoom | undefined {
  if (!room?.isLimited(tenant)) return undefined;
  const count = (growth: Growth): void => room.count(tenant, growth);
  if (isAdmitted)
    return {
      count,
      take: (growth) => Promise.resolve(count(growth)),
      require: () => Promise.resolve(),
    };
  return {
    count,
    take: (growth) => room.take(tenant, growth),
    require: (growth) => room.require(tenant, growth),
  };
}
