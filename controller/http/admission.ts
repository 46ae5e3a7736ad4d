import { AppError } from "../../common/errors.ts";
import { THREAD_TURNS } from "../turns.ts";

export interface AdmissionLimits {
  readonly inFlightMax: number;
  readonly waitingMax: number;
}

interface Gate {
  inFlight: number;
  readonly waiting: Set<() => void>;
}

/**
 * Bounds how much of something one tenant, or whatever the name stands for, does at once; the rest waits in order. What
 * is admitted begins in turns with what others do.
 */
export class Admission {
  readonly #limits: AdmissionLimits;
  readonly #gates = new Map<string, Gate>();

  constructor(limits: AdmissionLimits) {
    this.#limits = limits;
  }

  /** Resolves with the function that gives the place back. `AppError("limited")` when even the queue is full. */
  async enter(name: string, signal?: AbortSignal): Promise<() => void> {
    const gate = this.#gateOf(name);
    if (gate.inFlight < this.#limits.inFlightMax) gate.inFlight++;
    else await this.#queue(gate, signal);
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

  #queue(gate: Gate, signal: AbortSignal | undefined): Promise<void> {
    if (gate.waiting.size >= this.#limits.waitingMax)
      throw new AppError("limited", "Too many calls at once; come back later.");
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
      const [next] = gate.waiting;
      if (next === undefined) {
        if (--gate.inFlight === 0) this.#gates.delete(name);
        return;
      }
      // The place goes straight to the next in line.
      gate.waiting.delete(next);
      next();
    };
  }
}
