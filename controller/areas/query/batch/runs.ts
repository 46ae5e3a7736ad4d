import { withinTime } from "../../../../common/concurrency.ts";
import { AppError, isAppError } from "../../../../common/errors.ts";
import { ulidOf } from "../../../../common/ids.ts";
import { QUERY_BATCH_JOURNAL_MAX_BYTES, QUERY_BATCH_KEEP_MS, SHUTDOWN_DEADLINE_MS } from "../../../../common/limits.ts";
import type { Row } from "../../../../common/value.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Stores } from "../../../store/engine.ts";
import { isPassing, Journal, type Controllers, type Noted } from "../../../store/journal.ts";
import type { Audit } from "../../audit/index.ts";
import { Patience, type Rehearsals } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { record } from "../audited.ts";
import { BatchRun, checkAll, settle, type BatchChange, type BatchOrder, type OpenBatch } from "./run.ts";

export interface BatchDependencies {
  readonly stores: Stores;
  readonly controllers: Controllers;
  readonly objects: Rehearsals;
  readonly runtime: Runtime;
  readonly audit: Pick<Audit, "ready" | "write"> | undefined;
  /** Of a batch that is not over: from the first that is not noted as made. */
  readonly changesOf: (open: OpenBatch) => Promise<readonly BatchChange[]>;
}

/**
 * Makes batches that are bound: checked, put on record with all that must not change when they are made again, then made. One that is interrupted
 * stays on record, and whichever controller sees it without an owner makes it to the end.
 */
export class BatchRuns {
  readonly #dependencies: BatchDependencies;
  readonly #journal: Journal<OpenBatch>;
  readonly #patience: Patience;
  readonly #closing = new AbortController();
  readonly #held = new Set<string>();
  readonly #running = new Set<Promise<unknown>>();

  constructor(dependencies: BatchDependencies) {
    this.#dependencies = dependencies;
    this.#journal = new Journal(dependencies.stores, "batches/open/");
    this.#patience = new Patience(dependencies.runtime);
  }

  /** As far as that can be done without the objects. */
  async check(principal: Principal, changes: readonly BatchChange[]): Promise<void> {
    checkAll(changes, await this.#dependencies.objects.rehearse(principal));
  }

  /**
   * What the last change answers, when all are made. An error before the first write leaves nothing; `unknown_outcome`: what is missing is
   * going to be made. What else ends it says how many of its changes are there.
   */
  async run(
    order: BatchOrder,
    changes: readonly BatchChange[],
    signal: AbortSignal | undefined,
  ): Promise<readonly Row[]> {
    const { objects, runtime, controllers } = this.#dependencies;
    const rehearsal = await objects.rehearse(order.principal);
    const settled = await settle(changes, { rehearsal, signal });
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

  /** Goes on with what nobody works on. To be called from time to time and when a controller went; safe on several controllers. */
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

  /** What is under way rests and is gone on with by whoever sees it. */
  async close(): Promise<void> {
    this.#closing.abort(new AppError("cancelled", "The controller is shutting down."));
    await withinTime(this.#dependencies.runtime.clock, Promise.allSettled(this.#running), SHUTDOWN_DEADLINE_MS);
  }

  /** Nobody else here takes the batch for one that nobody works on. */
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
    const held = await this.#patience.repeat(() => this.#journal.begin(open.principal.tenant, open));
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
      return this.#patience.repeat(() => this.#journal.change(before.open.principal.tenant, before, next));
    };
    return new BatchRun(held, changes, {
      note,
      objects: this.#dependencies.objects,
      signal: this.#closing.signal,
      isChecked,
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
      if (isAppError(error) && !isPassing(error)) await record({ audit, principal, action }, error);
    }
  }

  /** Takes the batch off the record when the work is over, well or not. */
  async #ending<T>(open: OpenBatch, work: () => Promise<T>): Promise<T> {
    try {
      const result = await work();
      await this.#forget(open);
      return result;
    } catch (error) {
      if (isAppError(error) && !isPassing(error)) await this.#forget(open);
      throw error;
    }
  }

  /** Who finds it once more makes it once more, and changes nothing. */
  async #forget({ id, principal }: OpenBatch): Promise<void> {
    try {
      await this.#patience.repeat(() => this.#journal.remove(principal.tenant, id));
    } catch (error) {
      this.#dependencies.runtime.log.warn(
        { err: error, batch: id },
        "a batch that is over stays on record until it is found again",
      );
    }
  }
}

function checkSize(open: OpenBatch): void {
  if (Buffer.byteLength(JSON.stringify(open)) <= QUERY_BATCH_JOURNAL_MAX_BYTES) return;
  const message = `[Exec] The batch is too large: its text, its values and the ids of the objects it changes have at most ${QUERY_BATCH_JOURNAL_MAX_BYTES} bytes together.`;
  throw new AppError("too_large", message, { details: { limit: "QUERY_BATCH_JOURNAL_MAX_BYTES" } });
}

function checkAge({ startedMs }: OpenBatch, nowMs: number): void {
  if (nowMs - startedMs <= QUERY_BATCH_KEEP_MS) return;
  throw new AppError(
    "conflict",
    "[Exec] The batch was held up for so long that it could bring back what was removed since: the rest of it is given up.",
  );
}
