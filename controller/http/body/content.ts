import { AppError } from "../../../common/errors.ts";
import { meantOf, notKnown } from "../../../common/text/unknown.ts";
import type { Body } from "./body.ts";
import type { Endpoint } from "../interface/endpoint.ts";
import type { Fields } from "./fields.ts";
import { sentFiles, unknownMembers, unreadText } from "../input/warnings.ts";

interface Sent {
  readonly input: unknown;
  readonly query: Fields;
  readonly body: Body;
}

/**
 * Refuses a call whose content was sent in a way, or under a name, that the endpoint does not read.
 * `AppError("invalid")` names the right member.
 */
export function requireContent(endpoint: Endpoint, { input, query, body }: Sent): void {
  const names = endpoint.content?.(input as never, body.files) ?? [];
  if (names.length === 0 || names.some((name) => body.fields.has(name) || query.has(name))) return;
  const lost = lostContent(endpoint, body, names);
  if (lost === undefined) return;
  throw new AppError("invalid", `${names.join(" or ")} is missing${lost}`, { details: { fields: names } });
}

/** End of the error message about content that was sent in another way; `undefined` if there is none. */
function lostContent(endpoint: Endpoint, body: Body, names: readonly string[]): string | undefined {
  const unknown = unknownMembers(endpoint, body.fields);
  const ends = unknown.map((name) => meantOf(name, names));
  const at = Math.max(
    ends.findIndex((end) => end !== "."),
    0,
  );
  const name = unknown[at];
  if (name !== undefined) return `, and ${notKnown(name)}${ends[at]}`;
  if (sentFiles(body).length > 0) return ": it is a text here, and not a file.";
  return unreadText(endpoint, body) === undefined ? undefined : ": the body is neither JSON nor a form.";
}
