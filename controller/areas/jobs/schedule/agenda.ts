import type { Clock } from "../../../../common/time.ts";

interface Entry {
  readonly tenant: string;
  readonly name: string;
  readonly atMs: number;
}

interface Scheduled {
  /** The valid entry in the heap; other entries of the job are outdated. */
  entry: Entry | undefined;
  /** True while the job is being handled. */
  busy: boolean;
  /** True if the job changed while it was being handled. */
  again: boolean;
}

const CHANGED = "changed";

/** The times at which jobs are due, in a heap, and a signal for changes. */
export class Agenda {
  readonly #clock: Pick<Clock, "nowMs">;
  readonly #heap: Entry[] = [];
  readonly #jobs = new Map<string, Scheduled>();
  #bell = new AbortController();

  constructor(clock: Pick<Clock, "nowMs">) {
    this.#clock = clock;
  }

  /** Time of the job that is due first; `undefined`: there is none. */
  get nextMs(): number | undefined {
    for (let first = this.#heap[0]; first; first = this.#heap[0]) {
      if (this.#jobs.get(idOf(first))?.entry === first) return first.atMs;
      this.#pop();
    }
    return undefined;
  }

  /** A signal that fires at the next `add`, which `done` may call, too. */
  changed(): AbortSignal {
    if (this.#bell.signal.aborted) this.#bell = new AbortController();
    return this.#bell.signal;
  }

  /** Schedules a new or changed job for that time. */
  add(tenant: string, name: string, atMs: number): void {
    const id = `${tenant}\n${name}`;
    const known = this.#jobs.get(id);
    if (known?.busy) {
      known.again = true;
      return;
    }
    const entry = { tenant, name, atMs };
    this.#jobs.set(id, { entry, busy: false, again: false });
    this.#push(entry);
    // The constant reason saves time: without one, each abort would create an error with a stack trace.
    this.#bell.abort(CHANGED);
  }

  remove(tenant: string, name: string): void {
    this.#jobs.delete(`${tenant}\n${name}`);
  }

  /** Takes the job that is due first, if it is due at `nowMs`. It is not taken again before `done`. */
  take(nowMs: number): { readonly tenant: string; readonly name: string } | undefined {
    const nextMs = this.nextMs;
    if (nextMs === undefined || nextMs > nowMs) return undefined;
    const first = this.#pop();
    const job = first && this.#jobs.get(idOf(first));
    if (!job) return undefined;
    job.entry = undefined;
    job.busy = true;
    return first;
  }

  /** Ends the handling of a job, and schedules it again at `atMs`; `undefined`: not before it changes. */
  done(tenant: string, name: string, atMs: number | undefined): void {
    const job = this.#jobs.get(`${tenant}\n${name}`);
    if (!job?.busy) return;
    job.busy = false;
    const nextMs = job.again ? this.#clock.nowMs() : atMs;
    if (nextMs !== undefined) this.add(tenant, name, nextMs);
  }

  #push(entry: Entry): void {
    const heap = this.#heap;
    let at = heap.push(entry) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (heap[parent]!.atMs <= entry.atMs) break;
      heap[at] = heap[parent]!;
      at = parent;
    }
    heap[at] = entry;
  }

  #pop(): Entry | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (!first || !last || heap.length === 0) return first;
    let at = 0;
    for (let child = 1; child < heap.length; child = 2 * at + 1) {
      if (child + 1 < heap.length && heap[child + 1]!.atMs < heap[child]!.atMs) child += 1;
      if (heap[child]!.atMs >= last.atMs) break;
      heap[at] = heap[child]!;
      at = child;
    }
    heap[at] = last;
    return first;
  }
}

function idOf({ tenant, name }: Entry): string {
  return `${tenant}\n${name}`;
}
