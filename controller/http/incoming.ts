import type { Duplex } from "node:stream";
import { WEBSOCKET_PIECE_BYTES } from "../../common/limits.ts";

/**
 * Lets what a client says through in small pieces, each in a turn of its own: a few bytes make a frame, and thousands
 * of frames in one go would hold up all other connections. Nothing more is read while pieces wait. To be called after
 * the listeners of the socket's data are there.
 */
export function takeInTurns(socket: Duplex, turn: () => Promise<void>): void {
  const listeners = socket.listeners("data") as ((piece: Buffer) => void)[];
  socket.removeAllListeners("data");
  const chunks: Buffer[] = [];
  let feeding = false;
  const feed = async (): Promise<void> => {
    feeding = true;
    for (let chunk = chunks.shift(); chunk !== undefined; chunk = chunks.shift()) {
      for (let at = 0; at < chunk.length; at += WEBSOCKET_PIECE_BYTES) {
        await turn();
        if (socket.destroyed) return;
        const piece = chunk.subarray(at, at + WEBSOCKET_PIECE_BYTES);
        for (const listener of listeners) listener.call(socket, piece);
      }
    }
    feeding = false;
    socket.resume();
  };
  socket.on("data", (chunk: Buffer) => {
    chunks.push(chunk);
    socket.pause();
    if (!feeding) void feed();
  });
}
