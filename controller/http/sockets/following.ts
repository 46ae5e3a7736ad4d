import { AppError, isAppError } from "../../../common/errors.ts";
import type { ServerEvent } from "../interface/endpoint.ts";
import type { SocketLine } from "./socket.ts";

/** One part of what is followed: up to before the position `to`, or the end. */
export interface FollowedPart {
  readonly to?: number;
  readonly end?: unknown;
}

const END_MARK = "end";

/** Parts as events. The id of each is the position behind it, so that a client comes back to where it was. */
export async function* followedEvents(parts: AsyncIterable<FollowedPart>): AsyncGenerator<ServerEvent> {
  for await (const part of parts) {
    if (part.end === undefined) yield { id: String(part.to), data: part };
    else yield { id: END_MARK, event: "end", data: part };
  }
}

/** Where a client goes on; `undefined`: it has the end too. What a client has goes before its address. */
export function positionOf(lastEventId: string | undefined, from: number | undefined): number | undefined {
  if (lastEventId === END_MARK) return undefined;
  if (lastEventId === undefined || lastEventId === "") return from ?? 0;
  if (!/^\d{1,15}$/.test(lastEventId)) throw new AppError("invalid", "Last-Event-ID is no position of this stream.");
  return Number(lastEventId);
}

type Open = () => Promise<AsyncIterable<object>>;

/** Sends parts as JSON text frames, each when the network took the one before, and closes the socket when they end. */
export async function followOnSocket(line: SocketLine, open: Open): Promise<void> {
  try {
    for await (const part of await open()) if (!(await line.sent(JSON.stringify(part)))) return;
    line.end("over");
  } catch (error) {
    line.end(isAppError(error, "denied", "not_found", "invalid") ? "not permitted" : "broken");
  }
}
