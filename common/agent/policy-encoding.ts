import type { LogPolicySpec } from "../api/policies.ts";
import { encodingNamed, type Encoding } from "../text/encodings.ts";

/**
 * The encoding that the attributes of a policy name. Absent when they name none or UTF-8: then bytes are sent as they
 * are. Throws `AppError("invalid")` for a name that is none.
 */
export function policyEncoding({ attrs }: Pick<LogPolicySpec, "attrs">): Encoding | undefined {
  const name = attrs?.["encoding"] ?? "";
  if (name === "") return undefined;
  const encoding = encodingNamed(name, "attrs.encoding");
  return encoding.kind === "utf-8" ? undefined : encoding;
}
