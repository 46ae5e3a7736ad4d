import type { FastifyRequest } from "fastify";
import { ticketCookie } from "../answer/answer.ts";
import type { Expected } from "../../../common/revisions.ts";
import type { InCommit } from "../../areas/objects/index.ts";
import type { Principal } from "../../areas/permissions/index.ts";
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
  readonly entry: InCommit | undefined;
}

/**
 * A call as its handler gets it. The client and the signal are made when the handler asks for them, because few do. It
 * is a class, because V8 keeps what accessors of an object literal refer to until a collection of the whole heap.
 */
export class HandedCall<I> implements Call<I> {
  readonly #served: Served;
  readonly #body: Body;
  readonly principal: Principal;
  readonly input: I;
  readonly expected: Expected | undefined;

  constructor(served: Served, input: I, body: Body) {
    const { route, caller, request } = served;
    this.#served = served;
    this.#body = body;
    this.principal = caller.principal;
    this.input = input;
    this.expected = expectedBy(request.headers, route, input);
  }

  get files(): Body["files"] {
    return this.#body.files;
  }

  get text(): Body["text"] {
    return this.#body.text;
  }

  get malformed(): Body["malformed"] {
    return this.#body.malformed;
  }

  get client(): Client {
    return clientOf(this.#served.caller, this.#served.request);
  }

  get entry(): InCommit | undefined {
    return this.#served.entry;
  }

  get signal(): AbortSignal {
    return this.#served.lifetime.signal;
  }

  get present(): () => Promise<Principal | undefined> {
    return () => this.#served.caller.present();
  }
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
