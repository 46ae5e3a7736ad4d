import type { LogPolicySpec } from "../api/policies.ts";
import { encodingNamed, type Encoding } from "../text/encodings.ts";

/**
 * Encoding that the attributes of a policy name. `undefined` for none or UTF-8: bytes are then sent unchanged. Throws
 * `AppError("invalid")` for an unknown name.
 */
export function policyEncoding({ attrs }: Pick<LogPolicySpec, "attrs">): Encoding | undefined {
  const name = attrs?.["encoding"] ?? "";
  if (name === "") return undefined;
  const encoding = encodingNamed(name, "attrs.encoding");
  return encoding.kind === "utf-8" ? undefined : encoding;
}
