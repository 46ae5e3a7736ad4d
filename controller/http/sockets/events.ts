import { Readable } from "node:stream";
import { finished } from "node:stream/promises";
import type { FastifyReply } from "fastify";
import { AppError } from "../../../common/errors.ts";
import {
  HTTP_EVENT_STREAMS_PER_TENANT_MAX,
  HTTP_EVENTS_HEARTBEAT_MS,
  HTTP_EVENTS_RETRY_MS,
} from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";
import type { ServerEvent } from "../interface/endpoint.ts";
import type { Filter } from "../answer/filter.ts";
import { stillMay } from "../calls/standing.ts";

export const EVENTS_TYPE = "text/event-stream";
const HEARTBEAT = ":\n\n";

/** The part of a call that an event stream needs. */
export interface Listening {
  readonly clock: Clock;
  /** Fires when the stream must end, for example because the client has left or the controller stops. */
  readonly over: AbortSignal;
  /** False if the user is signed out or lacks the permission. Rejects while that cannot be read. */
  readonly stillAllowed: () => Promise<boolean>;
}

/** The open event streams of all tenants. */
export class EventStreams {
  readonly #open = new Map<string, Set<() => void>>();

  /**
   * Adds an open stream. Calls `end` when the controller stops or the tenant is deleted. The returned function removes
   * the stream. `AppError("limited")` if the tenant has too many.
   */
  enter(tenant: string, end: () => void): () => void {
    const ends = this.#open.get(tenant) ?? new Set();
    if (ends.size >= HTTP_EVENT_STREAMS_PER_TENANT_MAX) throw tooMany();
    this.#open.set(tenant, ends.add(end));
    return () => {
      ends.delete(end);
      if (ends.size === 0 && this.#open.get(tenant) === ends) this.#open.delete(tenant);
    };
  }

  /** Ends the streams of a tenant that was deleted. */
  leave(tenant: string): void {
    for (const end of this.#open.get(tenant) ?? []) end();
  }

  close(): void {
    for (const ends of this.#open.values()) for (const end of ends) end();
  }
}

function tooMany(): AppError {
  return new AppError("limited", "The tenant has too many open event streams.");
}

export interface EventsOptions {
  readonly listening: Listening;
  readonly filter: Filter | undefined;
  readonly onBroken: (error: unknown) => void;
}

type Events = AsyncIterable<ServerEvent>;

/**
 * Sends events until there are no more, or the listener leaves or loses the right. Clients reconnect when a stream
 * ends.
 */
export async function sendEvents(reply: FastifyReply, events: Events, options: EventsOptions): Promise<void> {
  const stream = Readable.from(new EventTexts(events, options).texts());
  // A proxy with a buffer would delay the events.
  void reply.header("x-accel-buffering", "no").type(EVENTS_TYPE);
  if (reply.request.method === "HEAD") return void reply.send("");
  void reply.send(stream);
  await finished(stream).catch((error: unknown) => {
    if (!options.listening.over.aborted) options.onBroken(error);
  });
}

type Arrival = IteratorResult<ServerEvent, unknown> | { readonly error: unknown };

/** Events as the text of a stream. Reads at most one event ahead of its reader. */
class EventTexts {
  readonly #source: AsyncIterator<ServerEvent>;
  readonly #options: EventsOptions;
  #arrival: Arrival | undefined;
  #wake: () => void = () => {};

  constructor(events: Events, options: EventsOptions) {
    this.#source = events[Symbol.asyncIterator]();
    this.#options = options;
  }

  async *texts(): AsyncGenerator<string> {
    const { over } = this.#options.listening;
    const wake = (): void => this.#wake();
    over.addEventListener("abort", wake);
    try {
      yield `retry: ${String(HTTP_EVENTS_RETRY_MS)}\n\n`;
      this.#ask();
      for (let text = await this.#next(); text !== undefined; text = await this.#next()) yield text;
    } finally {
      over.removeEventListener("abort", wake);
      // Not awaited, because the source may still be waiting for something.
      this.#source.return?.().catch(this.#options.onBroken);
    }
  }

  /** The next event; a heartbeat if none arrives within the interval; `undefined` at the end. */
  async #next(): Promise<string | undefined> {
    const { over, stillAllowed } = this.#options.listening;
    if (this.#arrival === undefined && !over.aborted) await this.#pause();
    const arrival = this.#arrival;
    if (over.aborted) return undefined;
    // An outage of the store does not end an idle stream. But an event is sent only if the rights can be read.
    if (arrival === undefined) return (await stillMay(stillAllowed())) ? HEARTBEAT : undefined;
    if ("error" in arrival) throw arrival.error;
    if (arrival.done === true || !(await stillAllowed())) return undefined;
    this.#ask();
    return this.#textOf(arrival.value);
  }

  #ask(): void {
    this.#arrival = undefined;
    this.#source.next().then(
      (result) => this.#arrived(result),
      (error: unknown) => this.#arrived({ error }),
    );
  }

  #arrived(arrival: Arrival): void {
    this.#arrival = arrival;
    this.#wake();
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      const cancel = this.#options.listening.clock.after(HTTP_EVENTS_HEARTBEAT_MS, resolve);
      this.#wake = () => {
        cancel();
        resolve();
      };
    });
  }

  #textOf({ id, event, data }: ServerEvent): string {
    const { filter } = this.#options;
    const told = JSON.stringify(filter === undefined ? data : filter(data));
    return `${line("id", id)}${line("event", event)}data: ${told}\n\n`;
  }
}

function line(field: string, value: string | undefined): string {
  if (value === undefined) return "";
  if (/[\r\n\0]/.test(value)) throw new Error(`The ${field} of an event has a line break.`);
  return `${field}: ${value}\n`;
}
