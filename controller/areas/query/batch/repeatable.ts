import type { Row } from "../../../../common/value.ts";
import type { ReadRequest, Rehearsal } from "../../objects/index.ts";

/** A change of objects in steps: what is settled once can be made any number of times, by any controller, and is made once in effect. */
export interface Repeatable {
  /** Names, values, keys and sizes, as far as they can be told without the objects. Comes before `reads` and `settle`. */
  check(rehearsal: Rehearsal): void;
  /** What its objects depend on. */
  reads(): readonly ReadRequest[];
  /** Finds out which objects are meant, checks the principal's rights to them, and gives each its time of writing. Nothing is written. */
  settle(signal: AbortSignal | undefined): Promise<Settlement>;
  /** Answers what the statement answers; only when it is made for the first time are the counts right. */
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

/** What of a statement must not change when it is made again. JSON. Times are those of `Objects.writeTimes`. */
export type Settled =
  /** Of INSERT, for the rows of each class: a time for each row, or one for all. */
  | { readonly kind: "rows"; readonly timesUs: readonly (readonly number[])[] }
  /** Of UPDATE and DELETE. */
  | { readonly kind: "found"; readonly found: readonly FoundObjects[] };

export interface FoundObjects extends ChangedObjects {
  readonly writeUs: number;
}

export interface Making {
  /** Of the statement, among all statements of all batches: ids are made of it. */
  readonly identity: string;
  readonly signal: AbortSignal;
  /** Notes that an object that was found gets another time before it is written; absent when somebody may have tried before. */
  readonly retimed:
    | ((object: { readonly class: string; readonly id: string }, writeUs: number) => Promise<void>)
    | undefined;
}
