import type { Duplex } from "node:stream";
import { WEBSOCKET_PIECE_BYTES, WEBSOCKET_RECEIVED_MAX_BYTES } from "../../../common/limits.ts";
import type { CallMemory } from "../body/memory.ts";

export interface TakeOptions {
  readonly turn: () => Promise<void>;
  /** Holds what came up to the end of its message; given back when the socket closes. */
  readonly memory: CallMemory;
  /** Called when there is no memory for what came, of which nothing more is read then. */
  readonly onRefused: () => void;
}

/**
 * Lets what a client says through in small pieces, each in a turn of its own: a few bytes make a frame, and thousands
 * of frames in one go would hold up all other connections. Nothing more is read while pieces wait. To be called after
 * the listeners of the socket's data are there; the function it answers is to be called at the end of each message.
 */
export function takeInTurns(socket: Duplex, { turn, memory, onRefused }: TakeOptions): () => void {
  const listeners = socket.listeners("data") as ((piece: Buffer) => void)[];
  socket.removeAllListeners("data");
  const chunks: Buffer[] = [];
  let feeding = false;
  /** Bytes of the message that has not ended, as far as they went through. */
  let unended = 0;
  const keep = (most: number): void => {
    if (unended <= most) return;
    memory.hold(most - unended);
    unended = most;
  };
  const feed = async (): Promise<void> => {
    feeding = true;
    for (let chunk = chunks.shift(); chunk !== undefined; chunk = chunks.shift()) {
      for (let at = 0; at < chunk.length; at += WEBSOCKET_PIECE_BYTES) {
        await turn();
        if (socket.destroyed) return;
        const piece = chunk.subarray(at, at + WEBSOCKET_PIECE_BYTES);
        unended += piece.length;
        for (const listener of listeners) listener.call(socket, piece);
        // No message is longer: the rest are frames that belong to none.
        keep(WEBSOCKET_RECEIVED_MAX_BYTES);
      }
    }
    feeding = false;
    socket.resume();
  };
  socket.on("data", (chunk: Buffer) => {
    socket.pause();
    try {
      memory.hold(chunk.length);
    } catch {
      return onRefused();
    }
    chunks.push(chunk);
    if (!feeding) void feed();
  });
  socket.once("close", () => memory.release());
  return () => keep(0);
}
