import type { Clock } from "../../../../common/time.ts";
import { ThreadSlices } from "../../../turns/slices.ts";

/**
 * Resolves when the next host of a run may continue. The hosts continue one after the other, in time slices. One commit
 * of the store can answer many hosts at once. Without turns, all of them would continue in one turn of the event loop.
 */
export type HostTurns = () => Promise<void>;

export function hostTurns(tenant: string, clock: Clock): HostTurns {
  const slices = new ThreadSlices({ tenant, clock, signal: undefined });
  let before = Promise.resolve();
  return () => (before = before.then(() => (slices.isOverNow() ? slices.pause() : undefined)));
}
