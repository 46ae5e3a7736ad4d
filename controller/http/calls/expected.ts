import type { IncomingHttpHeaders } from "node:http";
import { AppError } from "../../../common/errors.ts";
import { HTTP_ETAGS_MAX } from "../../../common/limits.ts";
import type { Expected } from "../../../common/revisions.ts";
import type { Route } from "./route.ts";

type Headers = Pick<IncomingHttpHeaders, "if-match" | "if-none-match">;
type Checked = Pick<Route, "endpoint" | "isChange">;

/**
 * The state that the headers of a change expect of the definition: `If-Match` with tags or `*`, `If-None-Match` with `*`
 * (RFC 9110, 13.1). A weak tag counts as the strong one, because compression makes tags weak and a revision names the
 * definition, not the bytes of an answer.
 *
 * `AppError("invalid")` for headers that say nothing, or something else, and `AppError("unsupported")` for an endpoint
 * that cannot check them. So no condition is accepted without an effect.
 */
export function expectedBy(headers: Headers, { endpoint, isChange }: Checked, input: unknown): Expected | undefined {
  const { "if-match": match, "if-none-match": noneMatch } = headers;
  const isExecution = endpoint.executes?.(input) === true;
  if ((!isChange && !isExecution) || (match === undefined && noneMatch === undefined)) return undefined;
  // A program that keeps answers asks with If-None-Match whether its own is still the last.
  if (endpoint.method === "GET" && match === undefined) return undefined;
  if (!endpoint.revised || isExecution)
    throw new AppError("unsupported", `${endpoint.method} ${endpoint.path} checks no If-Match and no If-None-Match.`);
  if (noneMatch !== undefined && noneMatch.trim() !== "*")
    throw new AppError("invalid", "If-None-Match of a change can only be *: it must not exist yet.");
  const isAbsent = noneMatch !== undefined;
  if (match === undefined) return { isAbsent };
  return { revisions: match.trim() === "*" ? "*" : revisionsIn(match), isAbsent };
}

const TAGS = /^\s*(?:W\/)?"([^"]*)"\s*(?:,|$)/;

function revisionsIn(text: string): readonly string[] {
  const revisions: string[] = [];
  let rest = text;
  while (rest.trim() !== "") {
    const [found, revision] = TAGS.exec(rest) ?? [];
    if (found === undefined || revision === undefined)
      throw new AppError("invalid", 'If-Match must be * or a list of revisions, each in quotes: If-Match: "5f0c".');
    if (revisions.push(revision) > HTTP_ETAGS_MAX)
      throw new AppError("too_large", `If-Match has more than ${HTTP_ETAGS_MAX} revisions.`, {
        details: { limit: "HTTP_ETAGS_MAX" },
      });
    rest = rest.slice(found.length);
  }
  if (revisions.length === 0) throw new AppError("invalid", "If-Match names no revision.");
  return revisions;
}
