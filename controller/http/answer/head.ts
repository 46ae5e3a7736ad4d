import { validateHeaderValue } from "node:http";
import type { FastifyReply } from "fastify";
import type { Endpoint, MessageAnswer } from "../interface/endpoint.ts";

type Head = Pick<MessageAnswer<unknown>, "status" | "headers">;
export type HeadWriter = (reply: FastifyReply, head: Head) => void;

/**
 * Makes the function that sets status and headers of one endpoint's replies. It throws, before it changes anything, for
 * a status or header that the endpoint does not declare, and for a value that is no header text.
 */
export function headWriter({ statuses = {}, revised }: Pick<Endpoint, "statuses" | "revised">): HeadWriter {
  return (reply, { status = 200, headers = {} }) => {
    const note = statuses[status];
    if (note === undefined && status !== 200) throw undeclared(`status ${String(status)}`);
    const declared = new Set(Object.keys(note?.headers ?? {}).map((name) => name.toLowerCase()));
    if (revised) declared.add("etag");
    for (const [name, value] of Object.entries(headers)) {
      if (!declared.has(name.toLowerCase())) throw undeclared(`header ${name} of the status ${String(status)}`);
      validateHeaderValue(name, value);
    }
    void reply.code(status).headers(headers);
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
