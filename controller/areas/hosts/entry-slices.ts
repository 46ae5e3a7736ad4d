import type { Clock } from "../../../common/time.ts";
import { ThreadSlices } from "../../turns/slices.ts";

/** Slices for what agents of a tenant send: apart from its calls, so that these do not wait behind all of it. */
export function entrySlices(tenant: string, clock: Clock): ThreadSlices {
  return new ThreadSlices({ tenant: `${tenant} agents`, clock, signal: undefined });
}
