import { AppError, isAppError } from "../../../../common/errors.ts";
import { NOWHERE, type Span } from "../../../../common/mql/index.ts";
import type { Row } from "../../../../common/value.ts";
import { counted } from "../../../../common/text/counted.ts";
import { isTransient, type Versioned, type OpenWork } from "../../../store/journal/index.ts";
import type { DryRun, Rehearsals } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import type { Arguments } from "../expressions/literal.ts";
import { about, aboutLater } from "../expressions/placing.ts";
import type { Slices } from "../run/slice.ts";
import type { Making, Repeatable, Settled } from "./repeatable.ts";
import { Touched } from "./touched.ts";

/** A statement of a batch that changes something. */
export interface BatchChange {
  readonly span: Span;
  readonly repeatable: Repeatable;
}

export interface BatchOrder {
  /** The caller, with the rights it had at the time of the call. */
  readonly principal: Principal;
  /** Text that contains the batch, at position `at`. */
  readonly text: string;
  readonly at: number;
  readonly values: Arguments;
  readonly startedMs: number;
  /** For the audit trail. */
  readonly action: string;
  readonly object: string;
}

/** An unfinished batch with everything that another controller needs to continue it. KvStore: `batches/open/<id>`. */
export interface OpenBatch extends OpenWork, BatchOrder {
  /** Number of changes that are known to be made. */
  readonly done: number;
  /** Settled changes after the first `done` changes. Some of them may be made. */
  readonly settled: readonly Settled[];
}

export async function checkAll(changes: readonly BatchChange[], rehearsal: DryRun, slices: Slices): Promise<void> {
  for (const { span, repeatable } of changes) {
    about(span, () => repeatable.check(rehearsal));
    if (slices.isOverNow()) await slices.pause();
  }
}

/**
 * Settles changes up to the first one that depends on an earlier one. That one is settled after the earlier ones are
 * made. All changes are checked before any is settled, as far as possible without the objects.
 */
export async function settle(
  changes: readonly BatchChange[],
  of: { readonly rehearsal: DryRun | undefined; readonly signal: AbortSignal | undefined; readonly slices: Slices },
): Promise<readonly Settled[]> {
  const { rehearsal, signal, slices } = of;
  if (rehearsal) await checkAll(changes, rehearsal, slices);
  const touched = new Touched();
  const settled: Settled[] = [];
  for (const { span, repeatable } of changes) {
    if (slices.isOverNow()) await slices.pause();
    if (touched.concerns(repeatable.reads())) break;
    const settlement = await aboutLater(span, () => repeatable.settle(signal));
    for (const objects of settlement.changes) touched.add(objects);
    settled.push(settlement.settled);
  }
  return settled;
}

interface RunContext {
  /** Stores progress. `undefined` when another controller changed or ended the batch. */
  readonly note: (
    before: Versioned<OpenBatch>,
    next: Pick<OpenBatch, "done" | "settled">,
  ) => Promise<Versioned<OpenBatch> | undefined>;
  readonly objects: Rehearsals;
  readonly signal: AbortSignal;
  readonly slices: Slices;
  /** False for a batch that another controller began. */
  readonly isChecked: boolean;
}

/** The run of one batch to its end. Settled changes are recorded before their first write. */
export class BatchRun {
  readonly #changes: readonly BatchChange[];
  readonly #context: RunContext;
  /** Index in the batch of the first of `changes`. */
  readonly #first: number;
  #held: Versioned<OpenBatch>;
  #made = 0;
  #isChecked: boolean;

  /** Number of changes from `#first` on that an earlier attempt may have made. This attempt settles later ones. */
  readonly #firstOwn: number;
  #noting: Promise<void> = Promise.resolve();

  /** `changes`: those of the batch from the first that is not recorded as made. */
  constructor(held: Versioned<OpenBatch>, changes: readonly BatchChange[], context: RunContext) {
    this.#held = held;
    this.#changes = changes;
    this.#context = context;
    this.#first = held.open.done;
    this.#isChecked = context.isChecked;
    this.#firstOwn = context.isChecked && !held.isRepeated ? 0 : held.open.settled.length;
  }

  /**
   * Makes the remaining changes and returns the rows of the last one. It is safe to call it again after any error, also
   * on another controller.
   */
  async roll(): Promise<readonly Row[]> {
    for (;;) {
      const rows = await this.#makeSettled();
      if (this.#made === this.#changes.length) return rows;
      await this.#settleRest();
    }
  }

  /** Throws the error of `roll` with what the caller of the batch has to know. */
  fail(error: unknown): never {
    return about(this.#changes[this.#made]?.span ?? NOWHERE, () => {
      throw this.#explained(error);
    });
  }

  #explained(error: unknown): unknown {
    if (!isAppError(error)) return error;
    const details = { ...error.details, batch: this.#held.open.id, made: this.#made };
    if (isTransient(error)) {
      const message =
        "[Exec] The batch was begun and interrupted. What is missing is made as soon as that can be done, by this controller or another one; it need not be repeated.";
      return new AppError("unknown_outcome", message, { details, cause: error });
    }
    if (this.#made === 0) return error;
    return new AppError(
      error.code,
      `${error.message} The ${counted(this.#made, "change before it was", "changes before it were")} made.`,
      {
        details,
        cause: error,
      },
    );
  }

  async #makeSettled(): Promise<readonly Row[]> {
    let rows: readonly Row[] = [];
    for (const [at, settled] of this.#held.open.settled.entries()) {
      const change = this.#changes[this.#made];
      if (!change) throw new RangeError("no more is settled than there are changes");
      if (this.#context.slices.isOverNow()) await this.#context.slices.pause();
      rows = await aboutLater(change.span, () => change.repeatable.make(settled, this.#making(at)));
      this.#made += 1;
    }
    return rows;
  }

  #making(at: number): Making {
    const { signal } = this.#context;
    const batch = { identity: `batch/${this.#held.open.id}`, statement: this.#first + this.#made };
    const identity = `${batch.identity}/${batch.statement}`;
    if (this.#made < this.#firstOwn) return { identity, batch, signal, retimed: undefined };
    const retimed: Making["retimed"] = (change) => {
      // Each note is written after the one before.
      this.#noting = this.#noting.then(() =>
        this.#note(this.#held.open.settled.map((settled, index) => (index === at ? change(settled) : settled))),
      );
      return this.#noting;
    };
    return { identity, batch, signal, retimed };
  }

  async #settleRest(): Promise<void> {
    const { objects, signal, slices } = this.#context;
    const rehearsal = this.#isChecked ? undefined : await objects.rehearse(this.#held.open.principal);
    const settled = await settle(this.#changes.slice(this.#made), { rehearsal, signal, slices });
    this.#isChecked = true;
    await this.#note(settled, this.#first + this.#made);
  }

  async #note(settled: readonly Settled[], done = this.#held.open.done): Promise<void> {
    const held = await this.#context.note(this.#held, { done, settled });
    if (!held) throw new AppError("unknown_outcome", "Another controller has taken the batch over.");
    this.#held = held;
  }
}
