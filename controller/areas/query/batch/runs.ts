import { withinTime } from "../../../../common/concurrency.ts";
import { AppError, isAppError } from "../../../../common/errors.ts";
import { ulidOf } from "../../../../common/ids.ts";
import { QUERY_BATCH_JOURNAL_MAX_BYTES, QUERY_BATCH_KEEP_MS, SHUTDOWN_DEADLINE_MS } from "../../../../common/limits.ts";
import type { Row } from "../../../../common/value.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Stores } from "../../../store/engine.ts";
import { isTransient, Journal, type Controllers, type Noted } from "../../../store/journal.ts";
import { Retry } from "../../../store/retry.ts";
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
  readonly audit: Pick<Audit, "ready" | "write"> | undefined;
  /** The changes of an unfinished batch, from the first that is not recorded as made. */
  readonly changesOf: (open: OpenBatch) => Promise<readonly BatchChange[]>;
}

interface RunOptions {
  readonly signal: AbortSignal | undefined;
  readonly slices: Slices;
}

/**
 * Makes bound batches: checks them, records everything that repetitions share, then makes them. An interrupted batch
 * stays recorded, and the next controller that finds it without an owner finishes it.
 */
export class BatchRuns {
  readonly #dependencies: BatchDependencies;
  readonly #journal: Journal<OpenBatch>;
  readonly #retry: Retry;
  readonly #closing = new AbortController();
  readonly #held = new Set<string>();
  readonly #running = new Set<Promise<unknown>>();

  constructor(dependencies: BatchDependencies) {
    this.#dependencies = dependencies;
    this.#journal = new Journal(dependencies.stores, "batches/open/");
    this.#retry = new Retry(dependencies.runtime);
  }

  /** As far as that can be done without the objects. */
  async check(principal: Principal, changes: readonly BatchChange[], slices: Slices): Promise<void> {
    await checkAll(changes, await this.#dependencies.objects.rehearse(principal), slices);
  }

  /**
   * The rows of the last change, when all are made. An error before the first write leaves nothing behind.
   * `unknown_outcome`: the missing changes are going to be made. Other errors say how many changes were made.
   */
  async run(
    order: BatchOrder,
    changes: readonly BatchChange[],
    { signal, slices }: RunOptions,
  ): Promise<readonly Row[]> {
    const { objects, runtime, controllers } = this.#dependencies;
    checkText(order);
    const rehearsal = await objects.rehearse(order.principal);
    const settled = await settle(changes, { rehearsal, signal, slices });
    const startedMs = runtime.clock.nowMs();
    const open = {
      ...order,
      id: ulidOf(startedMs, runtime.random.bytes(10)),
      owner: controllers.own,
      startedMs,
      done: 0,
      settled,
    };
    return this.#holding(open.id, () => this.#make(open, changes));
  }

  /**
   * Continues batches without an owner. Call it from time to time and when a controller is gone; safe on several
   * controllers.
   */
  async maintain(tenant: string): Promise<void> {
    const { controllers } = this.#dependencies;
    for (const found of await this.#journal.all(tenant)) {
      const { id, owner } = found.open;
      if (this.#closing.signal.aborted || this.#held.has(id) || (owner !== controllers.own && controllers.has(owner)))
        continue;
      await this.#holding(id, async () => {
        const mine = await this.#journal.change(tenant, found, { owner: controllers.own });
        if (mine) await this.#resume(mine);
      });
    }
  }

  /** Unfinished batches are left to the controller that finds them next. */
  async close(): Promise<void> {
    this.#closing.abort(new AppError("cancelled", "The controller is shutting down."));
    await withinTime(this.#dependencies.runtime.clock, Promise.allSettled(this.#running), SHUTDOWN_DEADLINE_MS);
  }

  /** Keeps `maintain` of this controller off the batch. */
  async #holding<T>(id: string, work: () => Promise<T>): Promise<T> {
    this.#held.add(id);
    const running = work();
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
      this.#held.delete(id);
    }
  }

  async #make(open: OpenBatch, changes: readonly BatchChange[]): Promise<readonly Row[]> {
    checkSize(open);
    const held = await this.#retry.run(() => this.#journal.begin(open.principal.tenant, open));
    if (!held) throw new AppError("internal", `The batch ${open.id} was begun twice.`);
    const run = this.#runOf(held, changes, true);
    return this.#ending(open, () => run.roll()).catch((error: unknown) => run.fail(error));
  }

  #runOf(held: Noted<OpenBatch>, changes: readonly BatchChange[], isChecked: boolean): BatchRun {
    const note = (
      before: Noted<OpenBatch>,
      next: Pick<OpenBatch, "done" | "settled">,
    ): Promise<Noted<OpenBatch> | undefined> => {
      checkSize({ ...before.open, ...next });
      return this.#retry.run(() => this.#journal.change(before.open.principal.tenant, before, next));
    };
    return new BatchRun(held, changes, {
      note,
      objects: this.#dependencies.objects,
      signal: this.#closing.signal,
      slices: this.#slicesOf(held),
      isChecked,
    });
  }

  #slicesOf({ open }: Noted<OpenBatch>): Slices {
    return new Slices({
      tenant: open.principal.tenant,
      clock: this.#dependencies.runtime.clock,
      signal: this.#closing.signal,
    });
  }

  async #resume(held: Noted<OpenBatch>): Promise<void> {
    const { audit, runtime, changesOf } = this.#dependencies;
    const { id, principal, action } = held.open;
    try {
      await audit?.ready(principal.tenant);
      await this.#ending(held.open, async () => {
        checkAge(held.open, runtime.clock.nowMs());
        await this.#runOf(held, await changesOf(held.open), false).roll();
      });
      await record({ audit, principal, action }, undefined);
    } catch (error) {
      runtime.log.warn({ err: error, batch: id }, "a batch that was interrupted could not be made to its end");
      if (isAppError(error) && !isTransient(error)) await record({ audit, principal, action }, error);
    }
  }

  /** Removes the batch from the record after the work, successful or not. */
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

  /** A controller that still finds the batch makes it once more, which changes nothing. */
  async #forget({ id, principal }: OpenBatch): Promise<void> {
    try {
      await this.#retry.run(() => this.#journal.remove(principal.tenant, id));
    } catch (error) {
      this.#dependencies.runtime.log.warn(
        { err: error, batch: id },
        "a batch that is over stays on record until it is found again",
      );
    }
  }
}

/** Before anything is done with it. */
function checkText({ text }: BatchOrder): void {
  if (text.length > QUERY_BATCH_JOURNAL_MAX_BYTES) throw tooLarge();
}

function checkSize(open: OpenBatch): void {
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
