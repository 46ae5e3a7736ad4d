import type { Statement } from "../../../common/mql/index.ts";
import { AppError } from "../../../common/errors.ts";
import type { Clock } from "../../../common/time.ts";
import type { Row } from "../../../common/value.ts";
import type { ClassCatalog, CountRequest, ObjectRow, Objects, ReadRequest, Tally } from "../objects/index.ts";
import { type Principal, seesAll } from "../permissions/index.ts";
import { scopeOf, visibility } from "./plan/scope.ts";
import type { ColumnMeta } from "./types.ts";

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
  readonly objects: Pick<Objects, "estimate">;
  readonly clock: Clock;
}

interface Measured {
  rows: number;
  waitedMs: number;
}

/** What a statement reads, class by class, and how long it waits for that. */
export class Measures {
  readonly #options: MeasuresOptions;
  /** By class, in the order in which they are first read. */
  readonly #reads = new Map<string, Measured>();
  /** By class, how many objects the plan is about to look at; `NaN`: not known, or not to be told. */
  readonly #estimated = new Map<string, number>();

  constructor(options: MeasuresOptions) {
    this.#options = options;
  }

  /**
   * Of a planned read. Estimates count what indexes name: they are told to those only who see every row and column of the
   * tenant.
   */
  async expect(read: ReadRequest): Promise<void> {
    const { principal, catalog, objects } = this.#options;
    const path = labelOf(read);
    const estimated = seesAll(principal, catalog.tree("/")) ? await objects.estimate(principal, read) : undefined;
    this.#estimated.set(path, (this.#estimated.get(path) ?? 0) + (estimated ?? NaN));
  }

  /** The same pages. Only rows that the principal may see count: the others must not be told of. */
  async *read(
    request: ReadRequest,
    pages: AsyncIterable<readonly ObjectRow[]>,
  ): AsyncGenerator<readonly ObjectRow[], void> {
    const { principal, catalog, clock } = this.#options;
    const { class: path, subtree } = request;
    const measured = this.#of(labelOf(request));
    const visible = visibility(scopeOf(principal, catalog, { path, subtree, alias: "" }));
    let sinceMs = clock.monotonicMs();
    for await (const page of pages) {
      measured.waitedMs += clock.monotonicMs() - sinceMs;
      for (const row of page) if (visible(row) === true) measured.rows++;
      yield page;
      sinceMs = clock.monotonicMs();
    }
    measured.waitedMs += clock.monotonicMs() - sinceMs;
  }

  /** The same counts. They are told to those only who see all of the rows. */
  async *count(request: CountRequest, counts: AsyncIterable<readonly Tally[]>): AsyncGenerator<readonly Tally[], void> {
    const { clock } = this.#options;
    const measured = this.#of(labelOf(request));
    let sinceMs = clock.monotonicMs();
    for await (const page of counts) {
      measured.waitedMs += clock.monotonicMs() - sinceMs;
      for (const { count } of page) measured.rows += count;
      yield page;
      sinceMs = clock.monotonicMs();
    }
    measured.waitedMs += clock.monotonicMs() - sinceMs;
  }

  /** The planned steps, what was read for them and the answer, once its rows were made and let go. */
  async *run(
    steps: readonly string[],
    start: () => Promise<AsyncIterable<readonly Row[]>>,
  ): AsyncGenerator<readonly Row[], void> {
    const { clock } = this.#options;
    const startMs = clock.monotonicMs();
    let answered = 0;
    for await (const page of await start()) answered += page.length;
    const wholeMs = clock.monotonicMs() - startMs;
    const told = [
      ...steps.map((work) => ({ work, estimated: null, rows: null, ms: null })),
      ...[...this.#reads].map(([path, { rows, waitedMs }]) => ({
        work: `read ${path}`,
        estimated: this.#estimatedOf(path),
        rows,
        ms: rounded(waitedMs),
      })),
      { work: "answer", estimated: null, rows: answered, ms: rounded(wholeMs) },
    ];
    yield told.map((row, index) => ({ step: index + 1, ...row }));
  }

  #estimatedOf(path: string): number | null {
    const estimated = this.#estimated.get(path) ?? NaN;
    return Number.isNaN(estimated) ? null : estimated;
  }

  #of(read: string): Measured {
    const known = this.#reads.get(read) ?? { rows: 0, waitedMs: 0 };
    this.#reads.set(read, known);
    return known;
  }
}

/** EXPLAIN ANALYZE runs what it explains. */
export function requireReading({ kind }: Statement): void {
  if (!["select", "union", "match"].includes(kind))
    throw new AppError("invalid", "[Valid] EXPLAIN ANALYZE runs what it explains: a SELECT, a UNION or a MATCH.");
}

function labelOf({ class: path, subtree }: Pick<ReadRequest, "class" | "subtree">): string {
  return `${path}${subtree ? "/" : ""}`;
}

function rounded(ms: number): number {
  return Math.round(ms * 10) / 10;
}
