import { errorText } from "../errors.ts";
import { CLIENT_FRAMES_MAX, CLIENT_FRAMES_MAX_CHARACTERS } from "../limits.ts";
import { tooLarge } from "./answers.ts";
import { OdpError } from "./error.ts";
import type { Socket } from "./platform.ts";
import { lineValue } from "./streams.ts";
import type { Watch } from "./watch.ts";

const NORMAL = 1000;
const POLICY = 1008;

/**
 * Yields the frames of a WebSocket. It is opened by the first read and closed when its reader leaves. Programs cannot
 * slow down a WebSocket, so frames wait in a bounded queue: a reader that is too slow gets `OdpError("too_large")`.
 */
export async function* framesOf(open: () => Socket, watch: Watch, timeoutMs: number): AsyncGenerator<unknown> {
  const queue = new FrameQueue();
  watch.within(timeoutMs, "The WebSocket was not opened");
  watch.check();
  const socket = opened(open);
  const stop = (): void => queue.end(watch.signal.reason as OdpError);
  watch.signal.addEventListener("abort", stop, { once: true });
  socket.onopen = () => watch.within(Infinity);
  socket.onmessage = ({ data }: { readonly data: unknown }) => queue.add(data);
  socket.onclose = (event: CloseEvent) => queue.end(endOf(event));
  // A close follows, which has the reason.
  socket.onerror = () => {};
  try {
    for (let frame = await queue.next(); frame !== undefined; frame = await queue.next()) yield lineValue(frame);
  } finally {
    watch.signal.removeEventListener("abort", stop);
    socket.onclose = null;
    socket.onmessage = null;
    socket.close(NORMAL, "left");
  }
}

function opened(open: () => Socket): Socket {
  try {
    return open();
  } catch (error) {
    throw new OdpError("unavailable", `The WebSocket was not opened: ${errorText(error)}.`, {
      cause: error,
      isUndone: true,
    });
  }
}

interface CloseEvent {
  readonly code: number;
  readonly reason: string;
}

/** The error of a close; `undefined` if nothing more follows. */
function endOf({ code, reason }: CloseEvent): OdpError | undefined {
  if (code === NORMAL) return undefined;
  if (code === POLICY && reason === "signed out") return new OdpError("signin", "The caller was signed out.");
  if (code === POLICY) return new OdpError("denied", `The WebSocket was closed: ${reason}.`);
  const why = reason === "" ? "it was refused, or its connection broke" : reason;
  return new OdpError("unavailable", `The WebSocket was closed: ${why} (${code}).`);
}

/** Frames between a socket that pushes and a reader that pulls. */
class FrameQueue {
  readonly #frames: string[] = [];
  #characters = 0;
  #end: { readonly error: OdpError | undefined } | undefined;
  #wake: () => void = () => {};

  add(data: unknown): void {
    if (this.#end !== undefined) return;
    const frame = String(data);
    this.#frames.push(frame);
    this.#characters += frame.length;
    if (this.#frames.length > CLIENT_FRAMES_MAX) this.#overflow("CLIENT_FRAMES_MAX", CLIENT_FRAMES_MAX);
    else if (this.#characters > CLIENT_FRAMES_MAX_CHARACTERS)
      this.#overflow("CLIENT_FRAMES_MAX_CHARACTERS", CLIENT_FRAMES_MAX_CHARACTERS);
    this.#wake();
  }

  /** The first end counts. Frames that arrived before it are still read. */
  end(error: OdpError | undefined): void {
    this.#end ??= { error };
    this.#wake();
  }

  /** The next frame; `undefined` at the end. */
  async next(): Promise<string | undefined> {
    if (this.#frames.length === 0 && this.#end === undefined) await new Promise<void>((wake) => (this.#wake = wake));
    const frame = this.#frames.shift();
    if (frame === undefined) {
      if (this.#end?.error !== undefined) throw this.#end.error;
      return undefined;
    }
    this.#characters -= frame.length;
    return frame;
  }

  #overflow(limit: string, max: number): void {
    const text = `More than ${max} frames or characters of the WebSocket wait for their reader: it is too slow.`;
    this.end(tooLarge(text, limit));
  }
}
