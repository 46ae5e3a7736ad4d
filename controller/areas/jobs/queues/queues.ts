import { AppError } from "../../../../common/errors.ts";
import {
  JOB_CHANGE_ATTEMPTS_MAX,
  JOB_QUEUE_LOOK_MAX_MS,
  JOB_QUEUE_LOOK_MS,
  JOB_QUEUE_MAX,
} from "../../../../common/limits.ts";
import { wait, type Clock } from "../../../../common/time.ts";
import type { Stores } from "../../../store/engine.ts";
import { decodeStored, encodeJson } from "../../../store/format.ts";
import type { KvTxn } from "../../../store/kv.ts";
import { AppendNotifier } from "../../../store/tail.ts";

const QUEUES = "jobs/queue/";

/** Key of the queue with the name that jobs give. */
export function namedQueue(name: string): string {
  return `${QUEUES}named/${name}`;
}

/** Key of the queue of a job whose schedule says `overlap=queue`. */
export function queueOfSchedule(fullName: string): string {
  return `${QUEUES}schedule/${fullName}`;
}

interface Place {
  readonly tenant: string;
  /** Key of the queue. */
  readonly key: string;
  readonly runId: string;
}

/**
 * Queues of executions that run one after the other: the first in a queue runs, the others wait. KvStore:
 * `jobs/queue/named/<queue>` and `jobs/queue/schedule/<name>@<dir>`; each contains the ids of runs in order.
 */
export class JobQueues {
  readonly #stores: Stores;
  readonly #clock: Clock;
  /** Announces that a run has left a queue through this controller. */
  readonly #moved = new AppendNotifier();

  constructor({ stores, clock }: { readonly stores: Stores; readonly clock: Clock }) {
    this.#stores = stores;
    this.#clock = clock;
  }

  /**
   * Adds a run to the end of the queue, in the transaction that `begin` makes. If the queue was changed meanwhile,
   * tries again. Answers the result of `begin`; `undefined`: one of its other conditions does not hold.
   * `AppError("limited")` if the queue is full, or was changed `JOB_CHANGE_ATTEMPTS_MAX` times meanwhile.
   */
  async enter<T>(
    { tenant, key, runId }: Place,
    begin: (within: KvTxn) => Promise<T | undefined>,
  ): Promise<T | undefined> {
    for (let attempt = 0; attempt < JOB_CHANGE_ATTEMPTS_MAX; attempt++) {
      const { revision, ids } = await this.#read(tenant, key);
      if (ids.length >= JOB_QUEUE_MAX) throw full(key);
      const begun = await begin({
        if: [{ key, revision }],
        then: [{ kind: "put", key, value: encodeJson([...ids, runId]) }],
      });
      if (begun || (await this.#read(tenant, key)).revision === revision) return begun;
    }
    throw new AppError("limited", `Others enter the queue ${nameOf(key)} all the time; try again later.`);
  }

  /**
   * Waits for the run's turn. True: the run is first in its queue, or no longer in it. False: the signal fired or
   * `untilMs` came first.
   */
  async turn(place: Place, { signal, untilMs, goesOn }: Waiting): Promise<boolean> {
    const { tenant, key, runId } = place;
    while (!signal.aborted && this.#clock.nowMs() < untilMs) {
      const woken = new AbortController();
      // Subscribe before the read, so that a change right after the read is not missed.
      const leave = this.#moved.on(`${tenant}/${key}`, () => woken.abort());
      try {
        const { ids } = await this.#read(tenant, key);
        const position = ids.indexOf(runId);
        if (position <= 0) return true;
        const [head = ""] = ids;
        if (await goesOn(head)) {
          const pauseMs = Math.min(JOB_QUEUE_LOOK_MAX_MS, JOB_QUEUE_LOOK_MS * position);
          await wait(this.#clock, pauseMs, signal, woken.signal);
        } else await this.leave({ tenant, key, runId: head });
      } finally {
        leave();
      }
    }
    return false;
  }

  /** Removes the run from the queue. Safe to repeat. */
  async leave({ tenant, key, runId }: Place): Promise<void> {
    const { kv } = await this.#stores.tenant(tenant);
    for (let attempt = 0; attempt < JOB_CHANGE_ATTEMPTS_MAX; attempt++) {
      const { revision, ids } = await this.#read(tenant, key);
      const others = ids.filter((id) => id !== runId);
      if (others.length === ids.length) return this.#moved.tell(`${tenant}/${key}`);
      const change =
        others.length === 0
          ? ({ kind: "delete", key } as const)
          : ({ kind: "put", key, value: encodeJson(others) } as const);
      if ((await kv.txn({ if: [{ key, revision }], then: [change] })).ok) return this.#moved.tell(`${tenant}/${key}`);
    }
    throw new AppError("limited", `Others change the queue ${nameOf(key)} all the time.`);
  }

  async #read(tenant: string, key: string): Promise<{ readonly revision: number; readonly ids: readonly string[] }> {
    const { kv } = await this.#stores.tenant(tenant);
    const entry = await kv.get(key);
    return entry ? { revision: entry.revision, ids: decodeStored<string[]>(entry.value) } : { revision: 0, ids: [] };
  }
}

interface Waiting {
  readonly signal: AbortSignal;
  readonly untilMs: number;
  /** True if an execution has not ended. An ended execution that is still in the queue is removed from it. */
  readonly goesOn: (runId: string) => Promise<boolean>;
}

function nameOf(key: string): string {
  return key.slice(key.indexOf("/", QUEUES.length) + 1);
}

function full(key: string): AppError {
  return new AppError("limited", `The queue ${nameOf(key)} has ${JOB_QUEUE_MAX} executions already.`, {
    details: { limit: "JOB_QUEUE_MAX" },
  });
}
