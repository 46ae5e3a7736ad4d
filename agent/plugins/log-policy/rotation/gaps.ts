import { join } from "node:path";
import type { Emission } from "../../../outbox/outbox.ts";
import type { LogWork } from "../work.ts";

interface Loss {
  /** Path of the log. */
  readonly home: string;
  readonly reason: "truncated" | "vanished";
  /** Number of bytes that are known to be lost. Zero means an unknown number. */
  readonly count: number;
  /** Time since which the lines may be lost. */
  readonly fromMs: number;
}

/** Reports lost lines of a log. The gap ends now. */
export function gapOf({ policy, spec, host }: LogWork, { home, reason, count, fromMs }: Loss): Emission[] {
  const toMs = host.clock.nowMs();
  const value = {
    policy: policy.name,
    source: join(spec.dir, home),
    reason,
    count,
    unit: count > 0 ? "bytes" : "unknown",
    fromMs: Math.round(Math.min(fromMs, toMs)),
    toMs,
  };
  return [{ body: { $case: "gap", value } }];
}
