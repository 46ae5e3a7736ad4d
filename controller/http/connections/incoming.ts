import type { Duplex } from "node:stream";
import { WEBSOCKET_PIECE_BYTES, WEBSOCKET_RECEIVED_MAX_BYTES } from "../../../common/limits.ts";
import type { CallMemory } from "../body/memory.ts";

export interface TakeOptions {
  readonly turn: () => Promise<void>;
  /** Holds the received bytes until their message ends. Released when the socket closes. */
  readonly memory: CallMemory;
  /** Called when there is no memory for received bytes. Nothing more is read then. */
  readonly onRefused: () => void;
}

/**
 * Passes received bytes on in small pieces, each in a turn of its own. A frame may have only a few bytes, so thousands
 * of frames in one turn would block all other connections. Reading stops while pieces wait. Call this after the
 * socket's `data` listeners are added. Call the returned function at the end of each message.
 */
export function takeInTurns(socket: Duplex, { turn, memory, onRefused }: TakeOptions): () => void {
  const listeners = socket.listeners("data") as ((piece: Buffer) => void)[];
  socket.removeAllListeners("data");
  const chunks: Buffer[] = [];
  let feeding = false;
  /** Bytes of the current message that were passed on. */
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
        // No message is longer. Further bytes are frames that belong to no message.
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
