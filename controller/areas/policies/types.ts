import type { PolicySpec } from "../../../common/api/policies.ts";

export type { PolicyRecord, PolicySpec } from "../../../common/api/policies.ts";

/**
 * A policy as its author gives it: what it does, and where. Absent hosts or tags keep what was there; in a new policy:
 * none.
 */
export interface PolicyInput {
  /** Without hosts and tags. */
  readonly spec: PolicySpec;
  readonly hosts?: readonly string[];
  readonly tags?: readonly string[];
}
