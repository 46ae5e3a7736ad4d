import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { AppError, errorText, isAppError } from "../../common/errors.ts";
import {
  AGENT_FRAME_MAX_BYTES,
  AGENT_FRAME_MAX_FIELDS,
  TUNNEL_FRAME_MAX_BYTES,
  TUNNEL_FRAME_MAX_FIELDS,
} from "../../common/limits.ts";
import { AgentFrame, AgentLinkService, TunnelFrame } from "../../proto/gen/agent/v1/agent.ts";

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
  return read(AgentFrame, bytes, FRAMES);
}

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
    const inner = shape[field];
    if (inner !== undefined && type === WireType.LengthDelimited)
      left = fieldsLeft(reader, { end: reader.uint32() + reader.pos, shape: inner, left, maxFields });
    else reader.skip(type, field);
  }
  return left;
}
