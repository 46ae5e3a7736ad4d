import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { AppError } from "../../../common/errors.ts";
import { documentSender } from "../answer/compress.ts";
import { pathOf } from "../calls/addressed.ts";
import { pageHeaders } from "../connections/browsers.ts";
import type { Manual } from "./files.ts";
import { resultsPage } from "./results.ts";

/** Paths of the manual. */
export const MANUAL_PATHS = ["/docs", "/docs/find", "/docs/:page"] as const;
const [START, SEARCH, PAGE] = MANUAL_PATHS;

/** Pages load the style, the script, the index and the pictures of the manual, and nothing else. */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; require-trusted-types-for 'script'; frame-ancestors 'none'";
/** A picture that is opened by itself shows its own style and runs nothing. */
const PICTURE_POLICY =
  "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const TYPES: Readonly<Record<string, string>> = {
  html: "text/html; charset=utf-8",
  css: "text/css; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  json: "application/json; charset=utf-8",
  svg: "image/svg+xml; charset=utf-8",
};

type Sender = (request: FastifyRequest, reply: FastifyReply) => FastifyReply;

/**
 * Serves the manual without sign-in: it is the same in every installation and has no data of any. It asks no store, so
 * it can be read while the stores are unavailable.
 */
export function addManual(app: FastifyInstance, manual: Manual): void {
  const senders = sendersOf(manual);
  const send = (name: string, request: FastifyRequest, reply: FastifyReply): FastifyReply => {
    const sender = senders.get(name) ?? senders.get(`${name}.html`);
    if (sender === undefined) throw new AppError("not_found", `The manual has no page ${name}: see ${START}.`);
    return sender(request, reply);
  };
  app.get(START, (request, reply) => send("index", request, reply));
  app.get(PAGE, (request, reply) => send((request.params as { readonly page: string }).page, request, reply));
  app.get(SEARCH, (request, reply) => {
    const query = new URLSearchParams(request.url.slice(pathOf(request.url).length)).get("q") ?? "";
    return reply
      .headers(pageHeaders(POLICY))
      .type(TYPES["html"] ?? "")
      .send(resultsPage(manual, query));
  });
}

function sendersOf({ files }: Manual): ReadonlyMap<string, Sender> {
  return new Map(
    [...files].map(([name, { text, packed }]) => {
      const ending = name.slice(name.lastIndexOf(".") + 1);
      const send = documentSender(text, { type: TYPES[ending] ?? "application/octet-stream", packed });
      const headers = pageHeaders(ending === "svg" ? PICTURE_POLICY : POLICY);
      return [name, (request: FastifyRequest, reply: FastifyReply) => send(request, reply.headers(headers))];
    }),
  );
}
