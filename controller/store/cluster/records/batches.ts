import { RECORD_BATCH_MAX_BYTES, RECORD_BATCH_MAX_ROWS } from "../../../../common/limits.ts";
import type { StoredRecord } from "../../objects.ts";
import { longLife } from "../tables.ts";
import { hourOf, idTimeMs, lifeOf, shardsOf } from "./places.ts";

type Partition = readonly [cid: number, hour: number, shard: number];

/** Records of one partition that are written together. */
export interface PartitionBatch {
  readonly life: number;
  readonly partition: Partition;
  readonly records: StoredRecord[];
  bytes: number;
}

/** Records of one class, hour and life. */
interface RecordsOfHour {
  readonly cid: number;
  readonly hour: number;
  readonly life: number;
  readonly records: StoredRecord[];
  bytes: number;
  untilMs: number;
}

/** Groups records by class, hour and life. */
export function hoursOf(records: readonly StoredRecord[]): RecordsOfHour[] {
  const hours = new Map<string, RecordsOfHour>();
  for (const record of records) {
    const hour = hourOf(idTimeMs(record.id));
    const life = lifeOf(record);
    const name = `${record.cid}/${hour}/${life}`;
    let of = hours.get(name);
    if (of === undefined) hours.set(name, (of = { cid: record.cid, hour, life, records: [], bytes: 0, untilMs: 0 }));
    of.records.push(record);
    of.bytes += record.value.length;
    of.untilMs = Math.max(of.untilMs, longLife(record.expiresAtMs));
  }
  return [...hours.values()];
}

/** Groups records of an hour with this number of shards into writes within the bounds of a batch. */
export function batchesOfOnePartition({ cid, hour, life, records }: RecordsOfHour, shards: number): PartitionBatch[] {
  const full: PartitionBatch[] = [];
  const open = new Map<number, PartitionBatch>();
  for (const record of records) {
    const [shard = 0] = shardsOf(record.id, [shards]);
    const bytes = record.value.length;
    let room = open.get(shard);
    const isFull = (of: PartitionBatch): boolean =>
      of.records.length >= RECORD_BATCH_MAX_ROWS || of.bytes + bytes > RECORD_BATCH_MAX_BYTES;
    if (room === undefined || isFull(room)) {
      room = { life, partition: [cid, hour, shard], records: [], bytes: 0 };
      open.set(shard, room);
      full.push(room);
    }
    room.records.push(record);
    room.bytes += bytes;
  }
  return full;
}
