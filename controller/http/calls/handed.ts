import type { FastifyRequest } from "fastify";
import { ticketCookie } from "../answer/answer.ts";
import type { Body } from "../body/body.ts";
import { maySignIn } from "../connections/origin.ts";
import type { Call, Client } from "../interface/endpoint.ts";
import type { CallCaller } from "./caller.ts";
import { expectedBy } from "./expected.ts";
import type { CallLifetime } from "./lifetime.ts";
import type { Route } from "./route.ts";
import { cookieIn } from "./signin.ts";

interface Served {
  readonly route: Route;
  readonly caller: CallCaller;
  readonly lifetime: CallLifetime;
  readonly request: FastifyRequest;
}

/**
 * A call as its handler gets it. The client and the signal are made when the handler asks for them, because few do. All
 * members are the object's own, so that a handler may copy it.
 */
export function handedCall({ route, caller, lifetime, request }: Served, input: unknown, body: Body): Call<unknown> {
  const { files, text, malformed } = body;
  return {
    principal: caller.principal,
    input,
    files,
    text,
    malformed,
    expected: expectedBy(request.headers, route, input),
    get client() {
      return clientOf(caller, request);
    },
    get signal() {
      return lifetime.signal;
    },
    present: () => caller.present(),
  };
}

function clientOf(caller: CallCaller, { headers }: FastifyRequest): Client {
  const lastEventId = headers["last-event-id"];
  return {
    remote: caller.remote,
    session: caller.identity?.session,
    maySignIn: maySignIn(headers, caller.own),
    ticket: cookieIn(headers.cookie, ticketCookie(caller.isSecure)),
    browser: /text\/html/i.test(headers.accept ?? ""),
    lastEventId: typeof lastEventId === "string" ? lastEventId : undefined,
  };
}
