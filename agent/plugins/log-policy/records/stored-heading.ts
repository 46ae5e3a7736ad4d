import { policyHeading, type HeadingRule } from "../../../../common/agent/policy-heading.ts";
import type { LogPolicySpec } from "../../../../common/api/policies.ts";
import { isAppError } from "../../../../common/errors.ts";
import type { Log } from "../../../log.ts";

/**
 * The heading rule of an assigned policy. An unusable rule is ignored, with a warning: the policy may have been stored
 * by an older version, which ignored the attribute.
 */
export function storedHeading(
  name: string,
  spec: Pick<LogPolicySpec, "attrs">,
  { log }: { readonly log: Log },
): HeadingRule {
  try {
    return policyHeading(spec);
  } catch (error) {
    if (!isAppError(error)) throw error;
    log("warn", "A policy names heading lines that cannot be known, and is read as if it named none.", {
      policy: name,
      heading: spec.attrs?.["heading"],
      error: error.message,
    });
    return policyHeading({});
  }
}
