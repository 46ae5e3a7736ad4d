import type { Row } from "../../../../common/value.ts";
import type { ReadRequest, DryRun } from "../../objects/index.ts";
import type { SubAnswers } from "../run/subselects.ts";

/** A change in steps. After it is settled, any controller may make it any number of times, with the effect of one. */
export interface Repeatable {
  /**
   * Checks names, values, keys and sizes, as far as possible without the objects. Call it before `reads` and `settle`.
   */
  check(rehearsal: DryRun): void;
  /** The reads on which the choice of objects depends. */
  reads(): readonly ReadRequest[];
  /** Finds the objects, checks the principal's rights to them, and chooses the write time of each. Writes nothing. */
  settle(signal: AbortSignal | undefined): Promise<Settlement>;
  /** Makes the change and returns its rows. Counts are right only the first time. */
  make(settled: Settled, making: Making): Promise<readonly Row[]>;
}

export interface Settlement {
  readonly settled: Settled;
  readonly changes: readonly ChangedObjects[];
}

/** Objects of one class by their whole ids. Objects whose ids are generated later are left out. */
export interface ChangedObjects {
  readonly class: string;
  readonly ids: readonly string[];
}

/** The part of a change that all repetitions share, as JSON. Times are those of `Objects.writeTimes`. */
export type Settled =
  /**
   * INSERT: for the rows of each class, one time for each row or one for all. With `orderedRows`, the rows of the whole
   * batch keep their order in their ids. Older controllers do not know that kind, and leave the batch to others. `rows`
   * is the kind of older versions; one of them settled ordered rows as `rows` with `isOrdered`.
   */
  | {
      readonly kind: "rows" | "orderedRows";
      readonly timesUs: readonly (readonly number[])[];
      readonly isOrdered?: true;
    }
  /**
   * UPDATE and DELETE: the objects that were found. `answers` has the answers of the SELECTs in the statement if they
   * are needed again.
   */
  | { readonly kind: "found"; readonly found: readonly FoundObjects[]; readonly answers?: SubAnswers };

export interface FoundObjects extends ChangedObjects {
  readonly writeUs: number;
}

export interface Making {
  /** Identifies the statement among all statements of all batches. Ids are made from it. */
  readonly identity: string;
  /** Identity of the batch, and index of the statement in it. */
  readonly batch: { readonly identity: string; readonly statement: number };
  readonly signal: AbortSignal;
  /**
   * Records that objects get a later time, before they are written. Absent if an earlier attempt may have written them.
   */
  readonly retimed: ((change: (settled: Settled) => Settled) => Promise<void>) | undefined;
}
