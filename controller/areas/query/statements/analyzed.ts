import type { Statement } from "../../../../common/mql/index.ts";
import { AppError } from "../../../../common/errors.ts";
import type { Clock } from "../../../../common/time.ts";
import type { Row } from "../../../../common/value.ts";
import type { ClassCatalog, CountRequest, ObjectRow, ReadRequest, Tally } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { scopeOf, visibility } from "../plan/names/scope.ts";
import type { PlanStep } from "../run/run.ts";
import type { StepName, StepTimes } from "../run/steps.ts";
import type { ColumnMeta } from "../types.ts";

export const ANALYZED_COLUMNS: readonly ColumnMeta[] = [
  { name: "step", title: "step", type: "int" },
  { name: "work", title: "work", type: "varchar" },
  { name: "estimated", title: "estimated", type: "bigint" },
  { name: "rows", title: "rows", type: "bigint" },
  { name: "ms", title: "ms", type: "double" },
];

interface MeasuresOptions {
  readonly principal: Principal;
  readonly catalog: ClassCatalog;
  readonly clock: Clock;
}

interface Measured {
  /** `NaN`: may not be shown. */
  rows: number;
  ms: number;
}

/**
 * Counts the rows that a statement reads by class and the rows that each step leaves, and measures the time of each.
 */
export class Measures implements StepTimes {
  readonly #options: MeasuresOptions;
  /** Reads by class, in the order in which the classes are first read. */
  readonly #reads = new Map<string, Measured>();
  /** Steps in the order in which rows pass them. */
  readonly #steps = new Map<StepName, Measured>();
  /** Estimated number of objects that the plan looks at, by class. `NaN`: unknown, or may not be shown. */
  readonly #estimated = new Map<string, number>();
  /** The part that works now. A step that waits for rows of another step does not work. */
  #working: Measured | undefined;
  #sinceMs = 0;

  constructor(options: MeasuresOptions) {
    this.#options = options;
  }

  /** Notes a planned read. `estimated` is absent if it is unknown or may not be shown. */
  expect(read: ReadRequest, estimated: number | undefined): void {
    const path = labelOf(read);
    this.#estimated.set(path, (this.#estimated.get(path) ?? 0) + (estimated ?? NaN));
  }

  /**
   * Returns the same pages. Counts only rows that the principal may see, because others must not be revealed. Counts
   * none of classes with hidden columns: an index may have found a visible row by its hidden values.
   */
  read(request: ReadRequest, pages: AsyncIterable<readonly ObjectRow[]>): AsyncIterable<readonly ObjectRow[]> {
    const { principal, catalog } = this.#options;
    const { class: path, subtree } = request;
    const scope = scopeOf(principal, catalog, { path, subtree, alias: "" });
    const visible = visibility(scope);
    const hasHidden = scope.classes.some((view) => scope.access(view).parts.some(({ hidden }) => hidden.size > 0));
    const read = this.#of(labelOf(request));
    if (hasHidden) read.rows = NaN;
    return this.#measured(read, pages, (row) => (visible(row) === true ? 1 : 0));
  }

  /** Returns the same counts. They are reported only if the principal sees all of the rows. */
  count(request: CountRequest, counts: AsyncIterable<readonly Tally[]>): AsyncIterable<readonly Tally[]> {
    return this.#measured(this.#of(labelOf(request)), counts, ({ count }) => count);
  }

  /** Returns the same pages, which have only rows that the principal may see. */
  step<T>(name: StepName, pages: AsyncIterable<readonly T[]>): AsyncIterable<readonly T[]> {
    const measured = this.#steps.get(name) ?? { rows: 0, ms: 0 };
    this.#steps.set(name, measured);
    return this.#measured(measured, pages, () => 1);
  }

  async *#measured<T>(
    measured: Measured,
    pages: AsyncIterable<readonly T[]>,
    countOf: (row: T) => number,
  ): AsyncGenerator<readonly T[], void> {
    const inner = pages[Symbol.asyncIterator]();
    try {
      for (;;) {
        const waiting = this.#turnTo(measured);
        const next = await inner.next().finally(() => this.#turnTo(waiting));
        if (next.done) return;
        for (const row of next.value) measured.rows += countOf(row);
        yield next.value;
      }
    } finally {
      await inner.return?.();
    }
  }

  /** Ends the time of the part that works now, and begins that of `next`. Returns the former part. */
  #turnTo(next: Measured | undefined): Measured | undefined {
    const nowMs = this.#options.clock.monotonicMs();
    const before = this.#working;
    if (before) before.ms += nowMs - this.#sinceMs;
    this.#sinceMs = nowMs;
    this.#working = next;
    return before;
  }

  /**
   * Runs the statement and drops its rows. Yields the planned steps, then the measured reads and steps, then the
   * answer.
   */
  async *run(
    steps: readonly PlanStep[],
    start: () => AsyncIterable<readonly Row[]> | Promise<AsyncIterable<readonly Row[]>>,
  ): AsyncGenerator<readonly Row[], void> {
    const { clock } = this.#options;
    const startMs = clock.monotonicMs();
    let answered = 0;
    for await (const page of await start()) answered += page.length;
    const wholeMs = clock.monotonicMs() - startMs;
    const told = [
      ...steps.map((step) => ({ ...planned(step), rows: null, ms: null })),
      ...Array.from(this.#reads, ([path, { rows, ms }]) => ({
        work: `read ${path}`,
        estimated: shown(this.#estimated.get(path)),
        rows: shown(rows),
        ms: rounded(ms),
      })),
      ...Array.from(this.#steps, ([work, { rows, ms }]) => ({ work, estimated: null, rows, ms: rounded(ms) })),
      { work: "answer", estimated: null, rows: answered, ms: rounded(wholeMs) },
    ];
    yield told.map((row, index) => ({ step: index + 1, ...row }));
  }

  #of(read: string): Measured {
    const known = this.#reads.get(read) ?? { rows: 0, ms: 0 };
    this.#reads.set(read, known);
    return known;
  }
}

/** A planned step in the form that EXPLAIN shows. */
export function planned(step: PlanStep): { readonly work: string; readonly estimated: number | null } {
  return typeof step === "string" ? { work: step, estimated: null } : step;
}

/** Refuses changes, because EXPLAIN ANALYZE runs what it explains. */
export function requireReading({ kind }: Statement): void {
  if (!["select", "union", "match"].includes(kind))
    throw new AppError("invalid", "[Valid] EXPLAIN ANALYZE runs what it explains: a SELECT, a UNION or a MATCH.");
}

function labelOf({ class: path, subtree }: Pick<ReadRequest, "class" | "subtree">): string {
  return `${path}${subtree ? "/" : ""}`;
}

function shown(count = NaN): number | null {
  return Number.isNaN(count) ? null : count;
}

function rounded(ms: number): number {
  return Math.round(ms * 10) / 10;
}
