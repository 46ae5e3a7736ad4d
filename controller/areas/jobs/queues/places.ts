import { AppError } from "../../../../common/errors.ts";
import { JOB_CHANGE_ATTEMPTS_MAX } from "../../../../common/limits.ts";
import { KeyedQueue } from "../../../../common/keyed-queue.ts";
import { counted } from "../../../../common/text/counted.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Stores } from "../../../store/engine.ts";
import { decodeStored, encodeJson } from "../../../store/format.ts";
import type { KvStore, KvTxn } from "../../../store/kv.ts";
import { hasOpen } from "../runs/executions.ts";
import type { Run } from "../runs/plan.ts";

/** An execution that counts towards the limit of its job. */
interface Place {
  readonly runId: string;
}

/**
 * Opens the first host of an execution, or stores the execution's own entry, in one transaction with `within`.
 * `undefined`: a condition does not hold.
 */
type Open<T> = (within: KvTxn) => Promise<T | undefined>;
/** The part of an execution by which its place is found. */
type Placed = Pick<Run, "id" | "order">;

const PLACES = "jobs/places/";

/**
 * Limits how many executions of a job with a `limit` run at once. A place is taken in the same transaction that opens
 * the first host or stores the execution's own entry. So even a slow controller cannot begin one execution too many.
 * The place is given back at the end. If it was not given back, it counts as free as soon as the execution has
 * completely ended.
 */
export class JobPlaces {
  readonly #stores: Stores;
  readonly #log: Runtime["log"];
  readonly #queue = new KeyedQueue();

  constructor({ stores, runtime }: { readonly stores: Stores; readonly runtime: Runtime }) {
    this.#stores = stores;
    this.#log = runtime.log;
  }

  /**
   * Takes a place. `AppError("limited")` if the job already has `limit` executions, or if other controllers change its
   * places all the time; then nothing was opened.
   */
  take<T>(run: Run, open: Open<T>): Promise<T> {
    return this.#queue.run([queueOf(run)], async () => {
      const { kv } = await this.#stores.tenant(run.order.principal.tenant);
      for (let attempt = 0; attempt < JOB_CHANGE_ATTEMPTS_MAX; attempt++) {
        const { revision, places } = await read(kv, run);
        const others = places.length < run.limit ? places : await this.#held(run, places);
        if (others.length >= run.limit)
          throw new AppError("limited", `${run.order.name} is executed ${counted(run.limit, "time")} at once already.`);
        const place: Place = { runId: run.id };
        const opened = await open({
          if: [{ key: keyOf(run), revision }],
          then: [{ kind: "put", key: keyOf(run), value: encodeJson([...others, place]) }],
        });
        if (opened) return opened;
      }
      throw new AppError("limited", `${run.order.name} is begun by other controllers all the time; try again later.`);
    });
  }

  /** Never fails. A place that could not be given back is found to be free later. */
  giveBack(run: Placed): Promise<void> {
    return this.#queue.run([queueOf(run)], async () => {
      try {
        await this.#remove(run);
      } catch (error) {
        this.#log.warn({ err: error, run: run.id }, "the place of a job execution could not be given back");
      }
    });
  }

  async #remove(run: Placed): Promise<void> {
    const { kv } = await this.#stores.tenant(run.order.principal.tenant);
    const key = keyOf(run);
    for (let attempt = 0; attempt < JOB_CHANGE_ATTEMPTS_MAX; attempt++) {
      const { revision, places } = await read(kv, run);
      const others = places.filter(({ runId }) => runId !== run.id);
      if (others.length === places.length) return;
      const then =
        others.length === 0
          ? ({ kind: "delete", key } as const)
          : ({ kind: "put", key, value: encodeJson(others) } as const);
      if ((await kv.txn({ if: [{ key, revision }], then: [then] })).ok) return;
    }
  }

  async #held(run: Placed, places: readonly Place[]): Promise<readonly Place[]> {
    const { tenant } = run.order.principal;
    const isHeld = await Promise.all(places.map(({ runId }) => hasOpen(this.#stores, tenant, runId)));
    return places.filter((_, at) => isHeld[at]);
  }
}

async function read(
  kv: KvStore,
  run: Placed,
): Promise<{ readonly revision: number; readonly places: readonly Place[] }> {
  const entry = await kv.get(keyOf(run));
  return entry ? { revision: entry.revision, places: decodeStored<Place[]>(entry.value) } : { revision: 0, places: [] };
}

function queueOf(run: Placed): string {
  return `${run.order.principal.tenant}/${keyOf(run)}`;
}

function keyOf({ order }: Placed): string {
  return PLACES + order.name;
}
