import type { Batch, Entry } from "../../../proto/gen/agent/v1/agent.ts";

export type EntryBody = NonNullable<Entry["body"]>;
export type ValueOf<C extends EntryBody["$case"]> = Extract<EntryBody, { $case: C }>["value"];

/** Entries that a `FakeController` received from its agents. */
export class ReceivedEntries {
  /** By stream and sequence, each once. */
  readonly #entries = new Map<string, Entry>();
  /** Sequence of the last entry of each stream. */
  readonly #through = new Map<string, number>();
  #arrivals = 0;

  /** Number of all arrivals, those of repeated entries too. */
  get arrivals(): number {
    return this.#arrivals;
  }

  /** Sequence of the last entry of the stream; 0 before the first. */
  through(stream: string): number {
    return this.#through.get(stream) ?? 0;
  }

  streams(): Iterable<readonly [stream: string, through: number]> {
    return this.#through;
  }

  /** Throws if an entry of the stream is missing. */
  take({ streamId: stream, entries }: Batch): void {
    for (const entry of entries) {
      this.#arrivals++;
      const through = this.through(stream);
      if (entry.sequence <= through) continue;
      if (through > 0 && entry.sequence !== through + 1)
        throw new Error(`a hole in the sequence: ${entry.sequence} after ${through}`);
      this.#entries.set(`${stream}:${entry.sequence}`, entry);
      this.#through.set(stream, entry.sequence);
    }
  }

  /** Bodies of one kind in the order of their sequence. */
  bodies<C extends EntryBody["$case"]>(kind: C): ValueOf<C>[] {
    const all = [...this.#entries.values()].sort((a, b) => a.sequence - b.sequence);
    return all.filter(({ body }) => body?.$case === kind).map(({ body }) => body?.value as ValueOf<C>);
  }
}
