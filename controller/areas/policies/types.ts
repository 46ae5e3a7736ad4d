import type { PolicySpec } from "../../../common/api/policies.ts";

export type { PolicyRecord, PolicySpec } from "../../../common/api/policies.ts";

/** A policy as its author gives it: what it does, and where. Without hosts it is kept and runs nowhere. */
export interface PolicyInput {
  readonly spec: PolicySpec;
  readonly hosts: readonly string[];
}
