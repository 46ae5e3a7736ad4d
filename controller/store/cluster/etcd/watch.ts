import type { IEvent, IKeyValue, IWatchResponse } from "etcd3";
import { AppError, errorText, isAppError } from "../../../../common/errors.ts";
import { wait } from "../../../../common/time.ts";
import type { KvEntry, KvEvent } from "../../kv.ts";
import type { Etcd } from "./etcd.ts";

const RECONNECT_PAUSE_MS = 200;

export interface WatchRequest {
  readonly key: Buffer;
  readonly rangeEnd: Buffer;
  readonly sinceRevision: number;
  readonly signal: AbortSignal;
  readonly toEntry: (pair: IKeyValue) => KvEntry;
}

/**
 * Watches keys through a stream of its own. When the stream breaks, it is opened again after the last revision that the
 * consumer has received completely. The watcher of `etcd3` continues after the last revision that the watcher itself
 * received, so events that a slow consumer has not yet taken are lost.
 */
export async function* watchKeys(etcd: Etcd, request: WatchRequest): AsyncGenerator<readonly KvEvent[]> {
  let since = request.sinceRevision;
  while (!request.signal.aborted) {
    try {
      for await (const step of watchOnce(etcd, request, since)) {
        since = Math.max(since, step.revision);
        if (step.events.length > 0) yield step.events;
        if (request.signal.aborted) return;
      }
    } catch (error) {
      if (isAppError(error, "compacted")) throw error;
      etcd.runtime.log.debug({ reason: errorText(error) }, "a watch lost etcd and begins again");
    }
    await wait(etcd.runtime.clock, RECONNECT_PAUSE_MS, request.signal);
  }
}

interface WatchStep {
  /** All events up to this revision were handed out. */
  readonly revision: number;
  readonly events: readonly KvEvent[];
}

async function* watchOnce(etcd: Etcd, request: WatchRequest, since: number): AsyncGenerator<WatchStep> {
  const { stream, end: stop } = await etcd.open(() => etcd.watches.watch());
  request.signal.addEventListener("abort", stop, { once: true });
  try {
    if (request.signal.aborted) return;
    stream.write({
      create_request: {
        key: request.key,
        range_end: request.rangeEnd,
        start_revision: since + 1,
        progress_notify: true,
        fragment: true,
      },
    });
    let held: IEvent[] = [];
    for await (const response of stream as AsyncIterable<IWatchResponse>) {
      refuseCancelled(response);
      etcd.saw(Number(response.header.revision));
      if (response.created) continue;
      held.push(...response.events);
      // A revision may be split over fragments: its events wait until it is complete.
      const ready = response.fragment
        ? held.filter((event) => event.kv.mod_revision !== held.at(-1)?.kv.mod_revision)
        : held;
      held = held.slice(ready.length);
      const last = ready.at(-1);
      const revision = last === undefined ? idleRevision(response, held, since) : Number(last.kv.mod_revision);
      yield { revision, events: ready.map((event) => toEvent(event, request.toEntry)) };
    }
  } finally {
    request.signal.removeEventListener("abort", stop);
    stop();
  }
}

function refuseCancelled(response: IWatchResponse): void {
  if (!response.canceled) return;
  if (Number(response.compact_revision) > 0)
    throw new AppError("compacted", "This history is no longer kept: list again.");
  throw new AppError("unavailable", `etcd ended a watch: ${response.cancel_reason}`);
}

/**
 * A progress notification without events means that all events so far were sent. It keeps an idle watch ahead of
 * compaction.
 */
function idleRevision(response: IWatchResponse, held: readonly IEvent[], since: number): number {
  return held.length > 0 || response.fragment ? since : Number(response.header.revision);
}

function toEvent(event: IEvent, toEntry: (pair: IKeyValue) => KvEntry): KvEvent {
  const entry = toEntry(event.kv);
  // The loader returns names of enums although the types say numbers.
  if (String(event.type).toUpperCase() === "DELETE")
    return { kind: "delete", key: entry.key, revision: entry.revision };
  return { kind: "put", entry };
}
