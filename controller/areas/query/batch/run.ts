import { AppError, isAppError } from "../../../../common/errors.ts";
import { NOWHERE, type Span } from "../../../../common/mql/index.ts";
import type { Row } from "../../../../common/value.ts";
import { isPassing, type Noted, type OpenWork } from "../../../store/journal.ts";
import type { Rehearsal, Rehearsals } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import type { Arguments } from "../literal.ts";
import { about, aboutLater } from "../placing.ts";
import { retimedIn } from "./found.ts";
import type { Making, Repeatable, Settled } from "./repeatable.ts";
import { Touched } from "./touched.ts";

/** A statement of a batch that changes something. */
export interface BatchChange {
  readonly span: Span;
  readonly repeatable: Repeatable;
}

export interface BatchOrder {
  /** Who asked for it, with the rights of then. */
  readonly principal: Principal;
  /** In which the batch begins `at` this place. */
  readonly text: string;
  readonly at: number;
  readonly values: Arguments;
  /** For the audit trail. */
  readonly action: string;
}

/** A batch that is not over, with all that another controller needs to go on. KvStore: `batches/open/<id>`. */
export interface OpenBatch extends OpenWork, BatchOrder {
  readonly startedMs: number;
  /** How many of its changes are made for certain. */
  readonly done: number;
  /** What those after them do, as far as that is settled; perhaps some of it is made. */
  readonly settled: readonly Settled[];
}

export function checkAll(changes: readonly BatchChange[], rehearsal: Rehearsal): void {
  for (const { span, repeatable } of changes) about(span, () => repeatable.check(rehearsal));
}

/**
 * Settles changes up to the first that looks at what one before it changes: that one is settled when those are made. All are checked, as far as
 * that can be done without the objects, before any is settled.
 */
export async function settle(
  changes: readonly BatchChange[],
  of: { readonly rehearsal: Rehearsal | undefined; readonly signal: AbortSignal | undefined },
): Promise<readonly Settled[]> {
  const { rehearsal, signal } = of;
  if (rehearsal) checkAll(changes, rehearsal);
  const touched = new Touched();
  const settled: Settled[] = [];
  for (const { span, repeatable } of changes) {
    if (touched.concerns(repeatable.reads())) break;
    const settlement = await aboutLater(span, () => repeatable.settle(signal));
    for (const objects of settlement.changes) touched.add(objects);
    settled.push(settlement.settled);
  }
  return settled;
}

interface RunContext {
  /** `undefined` when somebody else changed or ended the batch. */
  readonly note: (
    before: Noted<OpenBatch>,
    next: Pick<OpenBatch, "done" | "settled">,
  ) => Promise<Noted<OpenBatch> | undefined>;
  readonly objects: Rehearsals;
  readonly signal: AbortSignal;
  /** False for a batch that somebody else began. */
  readonly isChecked: boolean;
}

/** One batch on its way to the end. What is settled is noted before the first write of it. */
export class BatchRun {
  readonly #changes: readonly BatchChange[];
  readonly #context: RunContext;
  /** Of the changes, among all of the batch. */
  readonly #first: number;
  #held: Noted<OpenBatch>;
  #made = 0;
  #isChecked: boolean;

  /** Settled here, so that nobody else has tried them. */
  readonly #firstOwn: number;
  #noting: Promise<void> = Promise.resolve();

  /** With the changes from the first that is not noted as made. */
  constructor(held: Noted<OpenBatch>, changes: readonly BatchChange[], context: RunContext) {
    this.#held = held;
    this.#changes = changes;
    this.#context = context;
    this.#first = held.open.done;
    this.#isChecked = context.isChecked;
    this.#firstOwn = context.isChecked ? 0 : held.open.settled.length;
  }

  /** What the last change answers. Safe to be called again, also elsewhere, after whatever error. */
  async roll(): Promise<readonly Row[]> {
    for (;;) {
      const rows = await this.#makeSettled();
      if (this.#made === this.#changes.length) return rows;
      await this.#settleRest();
    }
  }

  /** Throws the error of `roll` as it is told to whoever asked for the batch. */
  fail(error: unknown): never {
    return about(this.#changes[this.#made]?.span ?? NOWHERE, () => {
      throw this.#explained(error);
    });
  }

  #explained(error: unknown): unknown {
    if (!isAppError(error)) return error;
    const details = { ...error.details, batch: this.#held.open.id, made: this.#made };
    if (isPassing(error)) {
      const message =
        "[Exec] The batch was begun and interrupted. What is missing is made as soon as that can be done, by this controller or another one; it need not be repeated.";
      return new AppError("unknown_outcome", message, { details, cause: error });
    }
    if (this.#made === 0) return error;
    return new AppError(error.code, `${error.message} The ${this.#made} changes before it were made.`, {
      details,
      cause: error,
    });
  }

  async #makeSettled(): Promise<readonly Row[]> {
    let rows: readonly Row[] = [];
    for (const [at, settled] of this.#held.open.settled.entries()) {
      const change = this.#changes[this.#made];
      if (!change) throw new RangeError("no more is settled than there are changes");
      rows = await aboutLater(change.span, () => change.repeatable.make(settled, this.#making(at)));
      this.#made += 1;
    }
    return rows;
  }

  #making(at: number): Making {
    const { signal } = this.#context;
    const identity = `batch/${this.#held.open.id}/${this.#first + this.#made}`;
    if (this.#made < this.#firstOwn) return { identity, signal, retimed: undefined };
    const retimed: Making["retimed"] = (object, writeUs) => {
      // Each note is made over the one before.
      this.#noting = this.#noting.then(() =>
        this.#note(
          this.#held.open.settled.map((settled, index) =>
            index === at ? retimedIn(settled, object, writeUs) : settled,
          ),
        ),
      );
      return this.#noting;
    };
    return { identity, signal, retimed };
  }

  async #settleRest(): Promise<void> {
    const { objects, signal } = this.#context;
    const rehearsal = this.#isChecked ? undefined : await objects.rehearse(this.#held.open.principal);
    const settled = await settle(this.#changes.slice(this.#made), { rehearsal, signal });
    this.#isChecked = true;
    await this.#note(settled, this.#first + this.#made);
  }

  async #note(settled: readonly Settled[], done = this.#held.open.done): Promise<void> {
    const held = await this.#context.note(this.#held, { done, settled });
    if (!held) throw new AppError("unknown_outcome", "Another controller has taken the batch over.");
    this.#held = held;
  }
}
