import { validateHeaderValue } from "node:http";
import type { FastifyReply } from "fastify";
import { etagOf } from "../../../common/revisions.ts";
import type { Endpoint, MessageAnswer } from "../interface/endpoint.ts";

type Head = Pick<MessageAnswer<unknown>, "status" | "headers" | "revision">;
type Declared = Pick<Endpoint, "method" | "statuses" | "revised">;
export type HeadWriter = (reply: FastifyReply, head: Head) => void;

/**
 * Makes the function that sets status and headers of one endpoint's replies. It throws, before it changes anything, for
 * a status, header or revision that the endpoint does not declare, for a value that is no header text, and for a change
 * of a definition without a statement about its revision.
 */
export function headWriter({ method, statuses = {}, revised }: Declared): HeadWriter {
  return (reply, head) => {
    const { status = 200, headers = {}, revision } = head;
    const note = statuses[status];
    if (note === undefined && status !== 200) throw undeclared(`status ${String(status)}`);
    const declared = new Set(Object.keys(note?.headers ?? {}).map((name) => name.toLowerCase()));
    if (revision !== undefined && !revised) throw undeclared("revision");
    if (revised && method !== "GET" && !("revision" in head))
      throw new Error("The answer does not tell the revision of the changed definition.");
    for (const [name, value] of Object.entries(headers)) {
      if (!declared.has(name.toLowerCase())) throw undeclared(`header ${name} of the status ${String(status)}`);
      validateHeaderValue(name, value);
    }
    void reply.code(status).headers(headers);
    if (revision !== undefined) void reply.header("etag", etagOf(revision));
  };
}

function undeclared(what: string): Error {
  return new Error(`The endpoint does not declare the ${what}.`);
}

/** True if `If-None-Match` names the version. Weak and strong tags count as the same (RFC 9110, 13.1.2). */
export function namesVersion(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  if (ifNoneMatch.trim() === "*") return true;
  const opaque = (tag: string): string => tag.replace(/^W\//, "");
  return (ifNoneMatch.match(/(?:W\/)?"[^"]*"/g) ?? []).some((tag) => opaque(tag) === opaque(etag));
}
