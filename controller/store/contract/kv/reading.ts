import type { KvEvent, KvPage, KvStore } from "../../kv.ts";
import { again, text } from "../harness.ts";

/** Every entry under a prefix, in pages of at most `limit`. */
export async function listAll(kv: KvStore, prefix: string, limit: number, from?: string): Promise<KvPage["entries"]> {
  const entries = [];
  let after = from;
  do {
    const options = after === undefined ? { limit } : { limit, after };
    const page: KvPage = await again(() => kv.list(prefix, options));
    if (page.entries.length > limit) throw new Error(`A page of at most ${limit} has ${page.entries.length}.`);
    entries.push(...page.entries);
    after = page.next;
  } while (after !== undefined);
  return entries;
}

interface Collect {
  readonly since: number;
  readonly until: (events: readonly KvEvent[]) => boolean;
}

/** The events of a watch until `until` holds. */
export async function collect(kv: KvStore, prefix: string, { since, until }: Collect): Promise<readonly KvEvent[]> {
  const abort = new AbortController();
  const events: KvEvent[] = [];
  for await (const batch of kv.watch(prefix, { sinceRevision: since, signal: abort.signal })) {
    events.push(...batch);
    if (until(events)) abort.abort();
  }
  return events;
}

export async function drain(watch: AsyncIterable<readonly KvEvent[]>): Promise<readonly KvEvent[]> {
  const events: KvEvent[] = [];
  for await (const batch of watch) events.push(...batch);
  return events;
}

/** One event as text. */
export function tell(event: KvEvent): string {
  return event.kind === "put" ? `${event.entry.key}=${text(event.entry.value)}` : `${event.key} gone`;
}

export function revisionOf(event: KvEvent): number {
  return event.kind === "put" ? event.entry.revision : event.revision;
}

/** The events as texts, without repetitions caused by lost answers. */
export function changesOf(events: readonly KvEvent[]): readonly string[] {
  return events.map(tell).filter((line, at, lines) => line !== lines[at - 1]);
}

/** A condition for `collect`: true when the text of one of the events is `line`. */
export function told(line: string): (events: readonly KvEvent[]) => boolean {
  return (events) => events.map(tell).includes(line);
}
