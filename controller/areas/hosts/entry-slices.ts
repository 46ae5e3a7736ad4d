import type { Clock } from "../../../common/time.ts";
import { ThreadSlices } from "../../turns/slices.ts";

/**
 * Time slices for data that the agents of a tenant send. They are separate from the slices of the tenant's calls, so
 * that calls do not wait for all of this data.
 */
export function entrySlices(tenant: string, clock: Clock): ThreadSlices {
  return new ThreadSlices({ tenant: `${tenant} agents`, clock, signal: undefined });
}
