import { policyEncoding } from "../../common/agent/policy-encoding.ts";
import type { LogPolicySpec } from "../../common/api/policies.ts";
import { isAppError } from "../../common/errors.ts";
import type { Encoding } from "../../common/text/encodings.ts";
import type { Log } from "../log.ts";

/**
 * The encoding of an assigned policy. One that does not exist counts as UTF-8, with a warning: the policy may have been
 * stored by an older version, which ignored the attribute and read UTF-8.
 */
export function storedEncoding(
  name: string,
  spec: Pick<LogPolicySpec, "attrs">,
  { log }: { readonly log: Log },
): Encoding | undefined {
  try {
    return policyEncoding(spec);
  } catch (error) {
    if (!isAppError(error, "invalid")) throw error;
    log("warn", "A policy names an encoding that does not exist, and is read as UTF-8.", {
      policy: name,
      encoding: spec.attrs?.["encoding"],
      error: error.message,
    });
    return undefined;
  }
}
