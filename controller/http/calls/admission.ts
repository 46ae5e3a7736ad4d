import { AppError } from "../../../common/errors.ts";
import { THREAD_TURNS } from "../../turns/turns.ts";

export interface AdmissionLimits {
  readonly inFlightMax: number;
  readonly waitingMax: number;
  /**
   * A smaller limit of one name, at least 1. It is read again whenever something enters or leaves. Absent: no name has
   * one.
   */
  readonly quotaOf?: (name: string) => number;
}

/** Who waits. The signal ends the wait; it is asked for only when there is one. */
interface Waiting {
  readonly signal: AbortSignal;
}

interface Gate {
  inFlight: number;
  readonly waiting: Set<() => void>;
}

/**
 * Limits how much of something one name, such as a tenant, does concurrently. The rest waits in order. Admitted work
 * begins in rotation with that of other names.
 */
export class Admission {
  readonly #limits: AdmissionLimits;
  readonly #gates = new Map<string, Gate>();

  constructor(limits: AdmissionLimits) {
    this.#limits = limits;
  }

  /**
   * Answers the function that gives the place back, at once if there is room. `AppError("limited")` if the queue is
   * full, too.
   */
  enter(name: string, caller?: Waiting): (() => void) | Promise<() => void> {
    const gate = this.#gateOf(name);
    this.#fill(name, gate);
    if (gate.inFlight >= this.#maxOf(name)) return this.#enterLater(name, gate, this.#queue(name, gate, caller));
    gate.inFlight++;
    return THREAD_TURNS.begins(name) ? this.#exit(name, gate) : this.#enterLater(name, gate);
  }

  /** `place` resolves when the name has a place; absent: it has one, and waits only for its turn. */
  async #enterLater(name: string, gate: Gate, place?: Promise<void>): Promise<() => void> {
    await place;
    await THREAD_TURNS.next(name);
    return this.#exit(name, gate);
  }

  /** Calls in flight by name, for metrics. */
  inFlight(): ReadonlyMap<string, number> {
    return new Map([...this.#gates].map(([name, gate]) => [name, gate.inFlight]));
  }

  #gateOf(name: string): Gate {
    let gate = this.#gates.get(name);
    if (gate === undefined) {
      gate = { inFlight: 0, waiting: new Set() };
      this.#gates.set(name, gate);
    }
    return gate;
  }

  #maxOf(name: string): number {
    return Math.min(this.#limits.inFlightMax, this.#limits.quotaOf?.(name) ?? Infinity);
  }

  #queue(name: string, gate: Gate, caller: Waiting | undefined): Promise<void> {
    if (gate.waiting.size >= this.#limits.waitingMax) return Promise.reject(this.#tooMany(name));
    const signal = caller?.signal;
    return new Promise((resolve, reject) => {
      const admitted = (): void => {
        signal?.removeEventListener("abort", gone);
        resolve();
      };
      const gone = (): void => {
        gate.waiting.delete(admitted);
        reject(
          signal?.reason instanceof AppError
            ? signal.reason
            : new AppError("cancelled", "The caller did not wait to be admitted."),
        );
      };
      gate.waiting.add(admitted);
      if (signal?.aborted === true) gone();
      else signal?.addEventListener("abort", gone, { once: true });
    });
  }

  #exit(name: string, gate: Gate): () => void {
    let left = false;
    return () => {
      if (left) return;
      left = true;
      gate.inFlight--;
      this.#fill(name, gate);
      if (gate.inFlight === 0) this.#gates.delete(name);
    };
  }

  /** Gives free places to those who wait: to none if the quota was lowered, to several if it was raised. */
  #fill(name: string, gate: Gate): void {
    for (const next of gate.waiting) {
      if (gate.inFlight >= this.#maxOf(name)) return;
      gate.waiting.delete(next);
      gate.inFlight++;
      next();
    }
  }

  #tooMany(name: string): AppError {
    const quota = this.#limits.quotaOf?.(name) ?? Infinity;
    if (quota >= this.#limits.inFlightMax) return new AppError("limited", "Too many calls at once; come back later.");
    return new AppError(
      "limited",
      `Too many calls at once: config.max_calls of ${name} is ${quota}. Come back later.`,
      {
        details: { limit: "max_calls", max: quota },
      },
    );
  }
}
