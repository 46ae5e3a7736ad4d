import { AppError } from "../errors.ts";
import { OdpError } from "./error.ts";
import type { FetchBody } from "./platform.ts";

const SOURCE_FAILED = "The source of the content failed while it was sent.";

/** Content that is sent as it is: text, bytes, or a stream of bytes. */
export type Content = string | Uint8Array<ArrayBuffer> | Blob | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>;

/** A file to upload. A `File` has its own name. */
export type Upload = File | NamedContent;

export interface NamedContent {
  readonly name: string;
  readonly content: Content;
  /** Media type. Default: `application/octet-stream`. */
  readonly type?: string;
}

/** True for content that can be read only once. */
export function isStream(content: unknown): content is ReadableStream<Uint8Array> | AsyncIterable<Uint8Array> {
  if (typeof content !== "object" || content === null || content instanceof Blob) return false;
  return "getReader" in content || Symbol.asyncIterator in content;
}

/** The pieces of content. When the reader ends early, the source of a stream is told. */
export async function* piecesOf(content: Content): AsyncGenerator<Uint8Array> {
  if (typeof content === "string") yield new TextEncoder().encode(content);
  else if (content instanceof Uint8Array) yield content;
  else if (content instanceof Blob) yield* readable(content.stream());
  else if ("getReader" in content) yield* readable(content);
  else yield* content;
}

/** As `for await` of a stream, which Safari does not offer. */
export async function* readable(stream: FetchBody): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader();
  let isDone = false;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      isDone = done;
      if (done) return;
      yield value;
    }
  } catch (error) {
    isDone = true;
    throw error;
  } finally {
    // A stream that is left early is cancelled, which closes its connection.
    if (!isDone) reader.cancel().catch(() => {});
    reader.releaseLock();
  }
}

/**
 * A stream that asks for each piece when its reader wants it. Cancelling it ends `pieces`, and so does `signal`: the
 * `fetch` of Node would read an upload to its end after the call is over.
 */
export function streamOf(pieces: AsyncGenerator<Uint8Array>, signal?: AbortSignal): ReadableStream<Uint8Array> {
  // Not awaited: the source may wait for a piece that never comes.
  const leave = (): void => void pieces.return(undefined).catch(() => {});
  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        signal?.addEventListener("abort", () => {
          controller.error(signal.reason);
          leave();
        });
      },
      async pull(controller) {
        const { done, value } = await pieces.next().catch((error: unknown) => {
          throw error instanceof AppError ? error : new OdpError("unknown_outcome", SOURCE_FAILED, { cause: error });
        });
        if (signal?.aborted === true) return;
        if (done === true) controller.close();
        else controller.enqueue(value);
      },
      cancel: leave,
    },
    { highWaterMark: 0 },
  );
}
