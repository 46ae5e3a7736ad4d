import { CLIENT_EVENTS_SILENCE_MS, CLIENT_RETRY_PAUSE_MAX_MS, HTTP_EVENTS_RETRY_MS } from "../limits.ts";
import type { Clock, Random } from "../time.ts";
import { OdpError } from "./error.ts";
import type { FetchResponse } from "./platform.ts";
import { eventsOf, type EventHead } from "./streams.ts";
import type { ServerEvent } from "./types.ts";
import { Watch } from "./watch.ts";

export interface FollowedOptions {
  readonly connect: (
    lastEventId: string | undefined,
  ) => Promise<{ readonly response: Pick<FetchResponse, "status">; readonly pieces: AsyncGenerator<Uint8Array> }>;
  /** Connections in a row that may bring nothing; 0: there is only one connection. */
  readonly attempts: number;
  readonly clock: Pick<Clock, "monotonicMs" | "after">;
  readonly random: Pick<Random, "next">;
  readonly signal: AbortSignal | undefined;
  readonly lastEventId: string | undefined;
}

/** Status of a stream whose reader has its end already. */
const NOTHING_MORE = 204;

/** Yields events over as many connections as it takes, each one once. */
export async function* followed(options: FollowedOptions): AsyncGenerator<ServerEvent<unknown>> {
  const { connect, attempts, clock, random, signal } = options;
  const head: EventHead = {};
  let { lastEventId } = options;
  for (let vain = 1; ; vain++) {
    const beganMs = clock.monotonicMs();
    let hasBytes = false;
    const broken = yield* connection();
    if (broken === undefined) return;
    // A connection that lived by its heartbeat was not in vain, although nothing happened.
    if (hasBytes && clock.monotonicMs() - beganMs >= CLIENT_EVENTS_SILENCE_MS) vain = 1;
    if (vain >= attempts) throw broken;
    const pauseMs = Math.min(head.retryMs ?? HTTP_EVENTS_RETRY_MS, CLIENT_RETRY_PAUSE_MAX_MS);
    await pause(pauseMs * (0.5 + random.next()));

    async function* noted(pieces: AsyncGenerator<Uint8Array>): AsyncGenerator<Uint8Array> {
      for await (const piece of pieces) {
        hasBytes = true;
        yield piece;
      }
    }

    /** The events of one connection. Returns the error after which to connect again, or nothing at the end. */
    async function* connection(): AsyncGenerator<ServerEvent<unknown>, OdpError | undefined> {
      try {
        const { response, pieces } = await connect(lastEventId);
        for await (const event of eventsOf(noted(pieces), head)) {
          vain = 0;
          lastEventId = event.id ?? lastEventId;
          yield event;
          if (event.event === "end") return undefined;
        }
        if (response.status === NOTHING_MORE || attempts === 0) return undefined;
        return new OdpError("unavailable", "The controller ended the stream of events several times.");
      } catch (error) {
        if (attempts > 0 && error instanceof OdpError && isPassing(error)) return error;
        throw error;
      }
    }
  }

  async function pause(ms: number): Promise<void> {
    const watch = new Watch(clock, signal);
    try {
      await watch.pause(ms);
    } finally {
      watch.leave();
    }
  }
}

/** True for the end of a connection; false for what the controller refuses. */
function isPassing({ code }: OdpError): boolean {
  return code === "unavailable" || code === "deadline";
}
