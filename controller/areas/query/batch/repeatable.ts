import type { Row } from "../../../../common/value.ts";
import type { ReadRequest, DryRun } from "../../objects/index.ts";
import type { SubAnswers } from "../run/subselects.ts";

/**
 * A change of objects in steps: once settled, it can be made any number of times, by any controller, with the effect of
 * one.
 */
export interface Repeatable {
  /**
   * Checks names, values, keys and sizes, as far as possible without the objects. Comes before `reads` and `settle`.
   */
  check(rehearsal: DryRun): void;
  /** The reads on which its choice of objects depends. */
  reads(): readonly ReadRequest[];
  /** Finds the objects, checks the principal's rights to them, and gives each its time of writing. Writes nothing. */
  settle(signal: AbortSignal | undefined): Promise<Settlement>;
  /** Makes the change and answers its rows; counts are right only the first time. */
  make(settled: Settled, making: Making): Promise<readonly Row[]>;
}

export interface Settlement {
  readonly settled: Settled;
  readonly changes: readonly ChangedObjects[];
}

/** Objects of one class, by their whole ids; those whose ids are made up are left out. */
export interface ChangedObjects {
  readonly class: string;
  readonly ids: readonly string[];
}

/** The part of a change that repetitions share. JSON. Times are those of `Objects.writeTimes`. */
export type Settled =
  /**
   * INSERT: for the rows of each class a time for each row, or one for all. The rows of all `orderedRows` of a batch keep
   * their order; a version that made other ids of them does not know that kind, and leaves the batch to the next
   * controller. `rows` are those that it settled; a version between the two settled ordered rows as `rows` with
   * `isOrdered`.
   */
  | {
      readonly kind: "rows" | "orderedRows";
      readonly timesUs: readonly (readonly number[])[];
      readonly isOrdered?: true;
    }
  /** UPDATE and DELETE: the objects found, and what the SELECTs in its condition answered where that is asked again. */
  | { readonly kind: "found"; readonly found: readonly FoundObjects[]; readonly answers?: SubAnswers };

export interface FoundObjects extends ChangedObjects {
  readonly writeUs: number;
}

export interface Making {
  /** Identifies the statement among all statements of all batches; ids are made of it. */
  readonly identity: string;
  /** Identifies the batch, and the statement in it. */
  readonly batch: { readonly identity: string; readonly statement: number };
  readonly signal: AbortSignal;
  /**
   * Records that objects get a later time, before they are written; absent when an earlier attempt may have written
   * them.
   */
  readonly retimed: ((change: (settled: Settled) => Settled) => Promise<void>) | undefined;
}
