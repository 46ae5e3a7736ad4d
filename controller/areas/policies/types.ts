import type { PolicySpec } from "../../../common/api/policies.ts";

export type { PolicyRecord, PolicySpec } from "../../../common/api/policies.ts";

/**
 * A policy as its author gives it: its task and its targets. If hosts or tags are absent, the stored ones stay; a new
 * policy has none.
 */
export interface PolicyInput {
  /** Without hosts and tags. */
  readonly spec: PolicySpec;
  readonly hosts?: readonly string[];
  readonly tags?: readonly string[];
  /** Called with each expression that matches no host. */
  readonly warn?: (text: string) => void;
}
