import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { AppError, errorText, isAppError } from "../../common/errors.ts";
import { AGENT_FRAME_MAX_BYTES, AGENT_FRAME_MAX_FIELDS } from "../../common/limits.ts";
import { AgentFrame, AgentLinkService } from "../../proto/gen/agent/v1/agent.ts";

/** Field numbers of messages inside a message that may repeat fields without end. */
interface Shape {
  readonly [field: number]: Shape;
}

/** Hello with facts, batch with entries and records and what it is pinned by, heartbeat, question. */
const FRAME: Shape = { 1: { 5: {} }, 2: { 2: { 10: {} }, 3: {} }, 3: {}, 6: {} };

/** A frame that was not decoded says why. */
export interface ReadFrame extends AgentFrame {
  readonly refused?: AppError;
}

/** The service as generated, with frames read by `readAgentFrame`. */
export const BOUNDED_AGENT_LINK = {
  ...AgentLinkService,
  session: { ...AgentLinkService.session, requestDeserialize: readAgentFrame },
};

/**
 * Decodes a frame that is not larger and has no more fields than an agent's can be. Decoding costs about a microsecond
 * for each field, however short, and stops the process meanwhile; counting them first costs little. Does not throw:
 * gRPC would hide the reason.
 */
export function readAgentFrame(bytes: Buffer): ReadFrame {
  try {
    if (bytes.length > AGENT_FRAME_MAX_BYTES)
      throw new AppError("too_large", `A frame of an agent has at most ${AGENT_FRAME_MAX_BYTES} bytes.`);
    fieldsLeft(new BinaryReader(bytes), { end: bytes.length, shape: FRAME, left: AGENT_FRAME_MAX_FIELDS });
    return AgentFrame.decode(bytes);
  } catch (error) {
    const refused = isAppError(error)
      ? error
      : new AppError("invalid", `A frame cannot be read: ${errorText(error)}`, { cause: error });
    return { frame: undefined, refused };
  }
}

function fieldsLeft(
  reader: BinaryReader,
  { end, shape, left: allowed }: { end: number; shape: Shape; left: number },
): number {
  let left = allowed;
  while (reader.pos < end) {
    const [field, type] = reader.tag();
    left -= 1;
    if (left < 0) throw new AppError("too_large", `A frame of an agent has at most ${AGENT_FRAME_MAX_FIELDS} fields.`);
    const inner = shape[field];
    if (inner !== undefined && type === WireType.LengthDelimited)
      left = fieldsLeft(reader, { end: reader.uint32() + reader.pos, shape: inner, left });
    else reader.skip(type, field);
  }
  return left;
}
