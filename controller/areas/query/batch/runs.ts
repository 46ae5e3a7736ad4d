import { AppError, isAppError } from "../../../../common/errors.ts";
import { ulidOf } from "../../../../common/ids.ts";
import { QUERY_BATCH_JOURNAL_MAX_BYTES, QUERY_BATCH_KEEP_MS } from "../../../../common/limits.ts";
import type { Row } from "../../../../common/value.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Stores } from "../../../store/engine.ts";
import { isTransient, Journal, type Controllers, type NewWork, type Versioned } from "../../../store/journal/index.ts";
import type { Audit } from "../../audit/index.ts";
import type { Rehearsals } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { record } from "../audited.ts";
import { Slices } from "../run/slice.ts";
import { BatchRun, checkAll, settle, type BatchChange, type BatchOrder, type OpenBatch } from "./run.ts";

export interface BatchDependencies {
  readonly stores: Stores;
  readonly controllers: Controllers;
  readonly objects: Rehearsals;
  readonly runtime: Runtime;
  readonly audit: Pick<Audit, "ready" | "record"> | undefined;
  /** The changes of an unfinished batch, from the first that is not recorded as made. */
  readonly changesOf: (open: OpenBatch) => Promise<readonly BatchChange[]>;
}

interface RunOptions {
  readonly signal: AbortSignal | undefined;
  readonly slices: Slices;
}

/**
 * Executes bound batches: checks them, records everything that a repetition needs, then makes the changes. An
 * interrupted batch stays recorded. The next controller that finds it without an owner finishes it.
 */
export class BatchRuns {
  readonly #dependencies: BatchDependencies;
  readonly #journal: Journal<OpenBatch>;

  constructor(dependencies: BatchDependencies) {
    this.#dependencies = dependencies;
    this.#journal = new Journal(dependencies, {
      prefix: "batches/open/",
      tenantOf: ({ principal }) => principal.tenant,
      isRepeatable: true,
    });
  }

  /** Checks the changes as far as that is possible without the objects. */
  async check(principal: Principal, changes: readonly BatchChange[], slices: Slices): Promise<void> {
    const rehearsal = await this.#dependencies.objects.rehearse(principal);
    await checkAll(changes, rehearsal, slices);
    await rehearsal.requireRoom();
  }

  /**
   * Returns the rows of the last change after all are made. An error before the first write leaves nothing behind.
   * `unknown_outcome`: the missing changes will be made later. Other errors say how many changes were made.
   */
  async run(
    order: BatchOrder,
    changes: readonly BatchChange[],
    { signal, slices }: RunOptions,
  ): Promise<readonly Row[]> {
    const { objects, runtime } = this.#dependencies;
    checkText(order);
    const rehearsal = await objects.rehearse(order.principal);
    const settled = await settle(changes, { rehearsal, signal, slices });
    // A batch that has begun must not be refused any more, so the quota is checked before.
    await rehearsal.requireRoom();
    const open = {
      ...order,
      id: ulidOf(order.startedMs, runtime.random.bytes(10)),
      done: 0,
      settled,
    };
    return this.#journal.inFlight.carry([open.id], () => this.#make(open, changes));
  }

  /**
   * Continues batches without an owner. Call it regularly, and when a controller is gone; safe on several controllers.
   */
  async maintain(tenant: string): Promise<void> {
    for await (const found of this.#journal.abandoned(tenant)) {
      const mine = await this.#journal.take(found);
      if (mine) await this.#journal.inFlight.carry([mine.open.id], () => this.#resume(mine));
    }
  }

  /** All unfinished batches. */
  async *open(tenant: string): AsyncGenerator<OpenBatch> {
    for await (const { open } of this.#journal.all(tenant)) yield open;
  }

  /** Leaves unfinished batches to the next controller that finds them. */
  close(): Promise<void> {
    return this.#journal.inFlight.close();
  }

  async #make(open: NewWork<OpenBatch>, changes: readonly BatchChange[]): Promise<readonly Row[]> {
    checkSize(open);
    const held = await this.#journal.begin(open);
    const run = this.#runOf(held, changes, true);
    return this.#ending(held.open, () => run.roll()).catch((error: unknown) => run.fail(error));
  }

  #runOf(held: Versioned<OpenBatch>, changes: readonly BatchChange[], isChecked: boolean): BatchRun {
    const note = (
      before: Versioned<OpenBatch>,
      next: Pick<OpenBatch, "done" | "settled">,
    ): Promise<Versioned<OpenBatch> | undefined> => {
      checkSize({ ...before.open, ...next });
      return this.#journal.step(before, next);
    };
    return new BatchRun(held, changes, {
      note,
      objects: this.#dependencies.objects,
      signal: this.#journal.inFlight.stopping,
      slices: this.#slicesOf(held),
      isChecked,
    });
  }

  #slicesOf({ open }: Versioned<OpenBatch>): Slices {
    return new Slices({
      tenant: open.principal.tenant,
      clock: this.#dependencies.runtime.clock,
      signal: this.#journal.inFlight.stopping,
    });
  }

  async #resume(held: Versioned<OpenBatch>): Promise<void> {
    const { audit, runtime, changesOf } = this.#dependencies;
    const { id, principal, action, object } = held.open;
    try {
      await audit?.ready(principal.tenant);
      await this.#ending(held.open, async () => {
        checkAge(held.open, runtime.clock.nowMs());
        await this.#runOf(held, await changesOf(held.open), false).roll();
      });
      await record({ audit, principal, action, object }, undefined);
    } catch (error) {
      runtime.log.warn({ err: error, batch: id }, "a batch that was interrupted could not be made to its end");
      if (isAppError(error) && !isTransient(error)) await record({ audit, principal, action, object }, error);
    }
  }

  /**
   * Removes the batch from the record after success and after a lasting `AppError`. After any other error the batch
   * stays.
   */
  async #ending<T>(open: OpenBatch, work: () => Promise<T>): Promise<T> {
    try {
      const result = await work();
      await this.#forget(open);
      return result;
    } catch (error) {
      if (isAppError(error) && !isTransient(error)) await this.#forget(open);
      throw error;
    }
  }

  /** If the removal fails, a controller finds the batch again and repeats it, which changes nothing. */
  async #forget(open: OpenBatch): Promise<void> {
    try {
      await this.#journal.end(open);
    } catch (error) {
      this.#dependencies.runtime.log.warn(
        { err: error, batch: open.id },
        "a batch that is over stays on record until it is found again",
      );
    }
  }
}

/** Checks the length of the text before any work. */
function checkText({ text }: BatchOrder): void {
  if (text.length > QUERY_BATCH_JOURNAL_MAX_BYTES) throw tooLarge();
}

function checkSize(open: NewWork<OpenBatch>): void {
  if (Buffer.byteLength(JSON.stringify(open)) > QUERY_BATCH_JOURNAL_MAX_BYTES) throw tooLarge();
}

function tooLarge(): AppError {
  const message = `[Exec] The batch is too large: its text, its values and the ids of the objects it changes have at most ${QUERY_BATCH_JOURNAL_MAX_BYTES} bytes together.`;
  return new AppError("too_large", message, { details: { limit: "QUERY_BATCH_JOURNAL_MAX_BYTES" } });
}

function checkAge({ startedMs }: OpenBatch, nowMs: number): void {
  if (nowMs - startedMs <= QUERY_BATCH_KEEP_MS) return;
  throw new AppError(
    "conflict",
    "[Exec] The batch was held up for so long that it could bring back what was removed since: the rest of it is given up.",
  );
}
