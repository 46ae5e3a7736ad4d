import type { Clock } from "../../../../common/time.ts";
import { ThreadSlices } from "../../../turns/slices.ts";

/**
 * Resolves when the next host of a run may continue. Hosts continue one after the other, in time slices. Otherwise all
 * hosts of all jobs of a batch would continue in one turn of the event loop, because one commit of the store answers
 * them together.
 */
export type HostTurns = () => Promise<void>;

export function hostTurns(tenant: string, clock: Clock): HostTurns {
  const slices = new ThreadSlices({ tenant, clock, signal: undefined });
  let before = Promise.resolve();
  return () => (before = before.then(() => (slices.isOverNow() ? slices.pause() : undefined)));
}
