import { AppError } from "../../common/errors.ts";
import type { StoreCall } from "../helpers/engines/memory/call.ts";
import { never, type Process } from "./process.ts";
import type { World } from "./world.ts";

/** Probabilities of faults in store calls; may be changed at any time. */
export interface StoreFaults {
  /** Calls that are slow, on their way there or back. */
  slow: number;
  slowMaxMs: number;
  /** Reads and writes that fail before they take effect. */
  away: number;
  /** Writes whose answer is lost. */
  unknown: number;
}

export const NO_STORE_FAULTS: StoreFaults = { slow: 0, slowMaxMs: 0, away: 0, unknown: 0 };

export interface StoreCallOptions {
  readonly world: World;
  readonly process: Process;
  /** Returns the current probabilities. */
  readonly faults: () => StoreFaults;
  readonly onCall?: (name: string) => void;
}

type Fate = "answered" | "away" | "unknown" | "undone";

interface Work<T> {
  readonly name: string;
  readonly action: () => T;
  readonly fate: Fate;
  readonly partly?: ((count: (of: number) => number) => void) | undefined;
}

/** The path of a program's calls to the shared store. A call that was sent arrives even if its sender has died. */
export function storeCall({ world, process, faults, onCall }: StoreCallOptions): StoreCall {
  const delay = (): number => (world.chance(faults().slow) ? world.between(0.1, faults().slowMaxMs) : 0);
  const perform = <T>(work: Work<T>): Promise<T> => {
    if (!process.alive) return never();
    onCall?.(work.name);
    return new Promise((resolve, reject) => {
      const answer = (settle: () => void): void => soon(delay(), () => process.turn(settle));
      soon(delay(), () => {
        const outcome = happen(work);
        answer(() => (outcome.ok ? resolve(outcome.value) : reject(outcome.error)));
      });
    });
  };
  const soon = (delayMs: number, action: () => void): void => {
    if (delayMs === 0) action();
    else world.after(delayMs, "store", action);
  };
  const happen = <T>({
    name,
    action,
    fate,
    partly,
  }: Work<T>): { ok: true; value: T } | { ok: false; error: unknown } => {
    if (fate === "answered") world.remark(`${process.name} ${name}`);
    else world.note(`${process.name} ${name}: ${fate}`);
    try {
      if (fate === "away") throw new AppError("unavailable", "The store is away.");
      if (fate === "undone") partly?.((of) => Math.floor(world.random.next() * (of + 1)));
      else return fate === "answered" ? { ok: true, value: action() } : lost(action());
      throw new AppError("unknown_outcome", "The answer was lost.");
    } catch (error) {
      return { ok: false, error };
    }
  };
  return {
    read: (name, action) => perform({ name, action, fate: world.chance(faults().away) ? "away" : "answered" }),
    write: (name, action, partly) => perform({ name, action, partly, fate: fateOfWrite(world, faults()) }),
    watch: (action) => perform({ name: "watch", action, fate: "answered" }),
  };
}

function lost(_done: unknown): never {
  throw new AppError("unknown_outcome", "The answer was lost.");
}

function fateOfWrite(world: World, faults: StoreFaults): Fate {
  if (world.chance(faults.away)) return "away";
  if (!world.chance(faults.unknown)) return "answered";
  return world.chance(0.5) ? "unknown" : "undone";
}
