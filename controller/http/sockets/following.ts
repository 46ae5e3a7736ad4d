import { AppError, isAppError } from "../../../common/errors.ts";
import type { ServerEvent } from "../interface/endpoint.ts";
import type { SocketLine } from "./socket.ts";

/** A part of a followed stream, up to before the position `to`; or the end of the stream. */
export interface FollowedPart {
  readonly to?: number;
  readonly end?: unknown;
}

const END_MARK = "end";

/**
 * Parts as events. The id of an event is the position after its part, so that a reconnecting client continues there.
 */
export async function* followedEvents(parts: AsyncIterable<FollowedPart>): AsyncGenerator<ServerEvent> {
  for await (const part of parts) {
    if (part.end === undefined) yield { id: String(part.to), data: part };
    else yield { id: END_MARK, event: "end", data: part };
  }
}

/**
 * Position from which a client continues; `undefined` if the client already has the end. `Last-Event-ID` takes
 * precedence over the position in the address.
 */
export function positionOf(lastEventId: string | undefined, from: number | undefined): number | undefined {
  if (lastEventId === END_MARK) return undefined;
  if (lastEventId === undefined || lastEventId === "") return from ?? 0;
  if (!/^\d{1,15}$/.test(lastEventId)) throw new AppError("invalid", "Last-Event-ID is no position of this stream.");
  return Number(lastEventId);
}

type Open = () => Promise<AsyncIterable<object>>;

/** Sends parts as JSON text frames, each after the network has taken the one before. Closes the socket at the end. */
export async function followOnSocket(line: SocketLine, open: Open): Promise<void> {
  try {
    for await (const part of await open()) if (!(await line.sent(JSON.stringify(part)))) return;
    line.end("over");
  } catch (error) {
    line.end(isAppError(error, "denied", "not_found", "invalid") ? "not permitted" : "broken");
  }
}
