import type { MemoryShare } from "./memory.ts";

/** Values sorted together; few enough not to block the thread. */
const RUN_VALUES = 1_024;
const PAIR_BYTES = 16;
/** A merge copies its runs, so for a moment they use twice the memory. */
const COPIES = 2;

interface Run {
  readonly times: Float64Array;
  readonly values: Float64Array;
}

/**
 * Sorts the values of a counter by their time; they may come in any order. Values are kept in sorted runs. The last two
 * runs are merged when the later one is at least as long, so each value is moved once for each doubling of its run.
 * Among values of one time, the smallest comes first.
 */
export class CounterGrowth {
  readonly #memory: Pick<MemoryShare, "take">;
  readonly #runs: Run[] = [];
  #open: (readonly [timeMs: number, value: number])[] = [];

  constructor(memory: Pick<MemoryShare, "take">) {
    this.#memory = memory;
  }

  add(timeMs: number, value: number): void {
    if (this.#open.length === 0) this.#memory.take(COPIES * RUN_VALUES * PAIR_BYTES);
    this.#open.push([timeMs, value]);
    if (this.#open.length === RUN_VALUES) this.#close();
  }

  /**
   * Growth per second from the first value to the last. A value smaller than the one before means that the counter
   * began again at 0, so it grew by this value. Undefined without two different times.
   */
  perSecond(): number | undefined {
    this.#close();
    while (this.#runs.length > 1) this.#mergeLast();
    const [run] = this.#runs;
    const seconds = run ? ((run.times.at(-1) ?? 0) - (run.times[0] ?? 0)) / 1_000 : 0;
    return run && seconds > 0 ? grown(run.values) / seconds : undefined;
  }

  #close(): void {
    if (this.#open.length === 0) return;
    const sorted = this.#open.sort(([time, value], [otherTime, other]) => time - otherTime || value - other);
    this.#runs.push({
      times: Float64Array.from(sorted, ([timeMs]) => timeMs),
      values: Float64Array.from(sorted, ([, value]) => value),
    });
    this.#open = [];
    while (this.#runs.length > 1 && lengthOf(this.#runs.at(-2)) <= lengthOf(this.#runs.at(-1))) this.#mergeLast();
  }

  #mergeLast(): void {
    const [left, right] = this.#runs.splice(-2);
    if (left && right) this.#runs.push(merged(left, right));
  }
}

function lengthOf(run: Run | undefined): number {
  return run?.times.length ?? 0;
}

function merged(left: Run, right: Run): Run {
  const length = lengthOf(left) + lengthOf(right);
  const into = { times: new Float64Array(length), values: new Float64Array(length) };
  let [own, other] = [0, 0];
  for (let at = 0; at < length; at += 1) {
    const isOwn = other >= lengthOf(right) || (own < lengthOf(left) && isFirst([left, own], [right, other]));
    const from = isOwn ? left : right;
    const place = isOwn ? own : other;
    into.times[at] = from.times[place] ?? 0;
    into.values[at] = from.values[place] ?? 0;
    if (isOwn) own += 1;
    else other += 1;
  }
  return into;
}

type Place = readonly [run: Run, at: number];

function isFirst([left, own]: Place, [right, other]: Place): boolean {
  const apart = (left.times[own] ?? 0) - (right.times[other] ?? 0);
  return apart < 0 || (apart === 0 && (left.values[own] ?? 0) <= (right.values[other] ?? 0));
}

function grown(values: Float64Array): number {
  let growth = 0;
  for (let at = 1; at < values.length; at += 1) {
    const [before, value] = [values[at - 1] ?? 0, values[at] ?? 0];
    growth += value < before ? value : value - before;
  }
  return growth;
}
