import { packedRecords } from "../../common/agent/packed-records.ts";
import type { RawRecord } from "../../common/agent/raw-records.ts";
import type { Records } from "../../proto/gen/agent/v1/agent.ts";
import type { Emission } from "./outbox.ts";

export type RecordsHead = Omit<Records, "offset" | "records" | "cut" | "malformed" | "raw" | "rawLengths" | "heading">;

/** Packs records into entries, in order: see `packedRecords`. */
export function packRecords(head: RecordsHead, records: readonly RawRecord[]): Emission[] {
  return packedRecords(records).map(({ raw, ...packed }) => {
    // Entries without malformed records share the empty buffer. Nearly all entries are so.
    const kept = raw.length === 0 ? NOTHING : Buffer.concat(raw);
    const value = { ...head, ...packed, records: packed.records.map(asBuffer), raw: kept };
    return { body: { $case: "records", value } };
  });
}

const NOTHING = Buffer.alloc(0);

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
