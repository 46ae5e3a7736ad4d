import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { AppError, errorText, isAppError } from "../../common/errors.ts";
import {
  AGENT_FRAME_MAX_BYTES,
  AGENT_FRAME_MAX_FIELDS,
  TUNNEL_FRAME_MAX_BYTES,
  TUNNEL_FRAME_MAX_FIELDS,
} from "../../common/limits.ts";
import { AgentFrame, AgentLinkService, Batch, Entry, Records, TunnelFrame } from "../../proto/gen/agent/v1/agent.ts";

/**
 * The fields of a message that contain messages, by field number. Their fields are counted, too, because a message may
 * repeat a field without limit.
 */
interface Shape {
  readonly [field: number]: Shape;
}

/** Messages inside an `AgentFrame`: hello with facts; batch with entries, records and pins; heartbeat; question. */
const FRAME: Shape = { 1: { 5: {} }, 2: { 2: { 10: {} }, 3: {} }, 3: {}, 6: {} };

interface Bounds {
  readonly maxBytes: number;
  readonly maxFields: number;
  readonly shape: Shape;
}

const FRAMES: Bounds = { maxBytes: AGENT_FRAME_MAX_BYTES, maxFields: AGENT_FRAME_MAX_FIELDS, shape: FRAME };
const PIECES: Bounds = {
  maxBytes: TUNNEL_FRAME_MAX_BYTES,
  maxFields: TUNNEL_FRAME_MAX_FIELDS,
  shape: { 1: {}, 3: {} },
};

interface Refused {
  /** Reason why the frame was not decoded. */
  readonly refused?: AppError;
}

export type ReadFrame = AgentFrame & Refused;

/** The generated service, with bounded decoding of the frames that agents send. */
export const BOUNDED_AGENT_LINK = {
  ...AgentLinkService,
  session: { ...AgentLinkService.session, requestDeserialize: readAgentFrame },
  tunnel: {
    ...AgentLinkService.tunnel,
    requestDeserialize: (bytes: Buffer): TunnelFrame & Refused => read(TunnelFrame, bytes, PIECES),
  },
};

/**
 * Decodes a frame if its size and number of fields are within the bounds of an agent's frame. Decoding costs about a
 * microsecond for each field, even a short one, and blocks the process; counting the fields first costs little. Errors
 * are returned in `refused` and not thrown, because gRPC would hide the reason.
 */
export function readAgentFrame(bytes: Buffer): ReadFrame {
  return read({ decode: decodeFrame }, bytes, FRAMES);
}

/** Tags of `AgentFrame.batch`, `Batch.entries`, `Entry.records` and `Records.records`. */
const BATCH = 18;
const ENTRIES = 18;
const RECORDS = 82;
const RECORD = 50;

/** Same as `AgentFrame.decode`, but the records of a batch refer to the bytes of the frame instead of copies. */
function decodeFrame(bytes: Buffer): AgentFrame {
  const { values, rest } = divided(bytes, BATCH);
  const [batch] = values;
  if (batch === undefined || values.length > 1 || rest.length > 0) return AgentFrame.decode(bytes);
  return { frame: { $case: "batch", value: decodeBatch(batch) } };
}

function decodeBatch(bytes: Buffer): Batch {
  const { values, rest } = divided(bytes, ENTRIES);
  return { ...Batch.decode(rest), entries: values.map(decodeEntry) };
}

function decodeEntry(bytes: Buffer): Entry {
  const { values, rest } = divided(bytes, RECORDS);
  const entry = Entry.decode(rest);
  const [records] = values;
  if (records === undefined || values.length > 1 || entry.body !== undefined) return Entry.decode(bytes);
  return { ...entry, body: { $case: "records", value: decodeRecords(records) } };
}

function decodeRecords(bytes: Buffer): Records {
  const { values, rest } = divided(bytes, RECORD);
  return { ...Records.decode(rest), records: values };
}

/** Divides a message into the values of the field with this tag, which has a length, and the other fields. */
function divided(bytes: Buffer, tag: number): { readonly values: Buffer[]; readonly rest: Buffer } {
  const reader = new BinaryReader(bytes);
  const values: Buffer[] = [];
  const others: Buffer[] = [];
  let otherFrom = 0;
  while (reader.pos < reader.len) {
    const start = reader.pos;
    const found = reader.uint32();
    if (found !== tag) {
      reader.skip(found & WIRE_TYPE, found >>> WIRE_TYPE_BITS);
      continue;
    }
    const end = endOf(reader);
    values.push(bytes.subarray(reader.pos, end));
    if (start > otherFrom) others.push(bytes.subarray(otherFrom, start));
    reader.pos = otherFrom = end;
  }
  if (reader.len > otherFrom) others.push(bytes.subarray(otherFrom));
  return { values, rest: others.length === 1 ? (others[0] ?? NOTHING) : Buffer.concat(others) };
}

/** Reads the length of a value, and returns the end of the value. */
function endOf(reader: BinaryReader): number {
  const end = reader.uint32() + reader.pos;
  if (end > reader.len) throw new RangeError("premature EOF");
  return end;
}

const WIRE_TYPE = 7;
const WIRE_TYPE_BITS = 3;
const NOTHING = Buffer.alloc(0);

function read<F>(
  frame: { decode(bytes: Buffer): F },
  bytes: Buffer,
  { maxBytes, maxFields, shape }: Bounds,
): F | { readonly frame: undefined; readonly refused: AppError } {
  try {
    if (bytes.length > maxBytes) throw new AppError("too_large", `A frame of an agent has at most ${maxBytes} bytes.`);
    fieldsLeft(new BinaryReader(bytes), { end: bytes.length, shape, left: maxFields, maxFields });
    return frame.decode(bytes);
  } catch (error) {
    const refused = isAppError(error)
      ? error
      : new AppError("invalid", `A frame cannot be read: ${errorText(error)}`, { cause: error });
    return { frame: undefined, refused };
  }
}

function fieldsLeft(
  reader: BinaryReader,
  { end, shape, left: allowed, maxFields }: { end: number; shape: Shape; left: number } & Pick<Bounds, "maxFields">,
): number {
  let left = allowed;
  while (reader.pos < end) {
    const [field, type] = reader.tag();
    left -= 1;
    if (left < 0) throw new AppError("too_large", `A frame of an agent has at most ${maxFields} fields.`);
    if (type !== WireType.LengthDelimited) reader.skip(type, field);
    else {
      const inner = shape[field];
      const last = endOf(reader);
      if (inner !== undefined) left = fieldsLeft(reader, { end: last, shape: inner, left, maxFields });
      // `skip` would make a buffer of each record.
      else reader.pos = last;
    }
  }
  return left;
}
