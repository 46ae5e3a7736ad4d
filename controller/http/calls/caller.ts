import type { FastifyRequest } from "fastify";
import { type AppError, isAppError } from "../../../common/errors.ts";
import type { Bound } from "../../../common/json-decoder.ts";
import { HTTP_BODY_MAX_BYTES, HTTP_RECEIVE_DEADLINE_MS } from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";
import { allows, requireMayChange, requirePermission, type Principal } from "../../areas/permissions/index.ts";
import type { Runtime } from "../../runtime.ts";
import { networkOf } from "../../settings/network.ts";
import { type SliceContext, ThreadSlices } from "../../turns/slices.ts";
import { NO_BODY, type Body } from "../body/body.ts";
import { CallBody, hasBody } from "../body/call-body.ts";
import type { Fields } from "../body/fields.ts";
import type { BodyMemory, CallMemory } from "../body/memory.ts";
import type { FileOfBody } from "../body/multipart.ts";
import type { OwnAddress } from "../connections/origin.ts";
import type { SilenceWatch } from "../connections/silence.ts";
import { readInput } from "../input/input.ts";
import type { TakenFile } from "../interface/endpoint.ts";
import { pathFields } from "./addressed.ts";
import { expectedBy } from "./expected.ts";
import type { CallLifetime } from "./lifetime.ts";
import type { Route } from "./route.ts";
import {
  identify,
  identifyByForm,
  knownIdentity,
  notSignedIn,
  type Caller,
  type Identity,
  type SignIn,
} from "./signin.ts";

export interface CallerDependencies {
  readonly runtime: Runtime;
  readonly signIn: SignIn;
  readonly bodyMemory: BodyMemory;
  readonly publicNames: readonly string[];
  /** Folder for uploads. They are removed after their call. */
  readonly uploads: string;
  readonly silence: Pick<SilenceWatch, "unhurried">;
}

interface CallParts {
  readonly route: Route;
  readonly request: FastifyRequest;
  readonly query: Fields;
  readonly lifetime: CallLifetime;
}

/** Maximum bytes of a body while its caller is unknown. */
const STRANGER_BOUND: Bound = { name: "HTTP_BODY_MAX_BYTES", max: HTTP_BODY_MAX_BYTES };

/**
 * The caller of one call, and its body. They belong together: a session in the body may be all that names the caller,
 * and the bounds of a body depend on its caller.
 */
export class CallCaller {
  readonly query: Fields;
  readonly #with: CallerDependencies;
  readonly #route: Route;
  readonly #request: FastifyRequest;
  readonly #lifetime: CallLifetime;
  readonly #memory: CallMemory;
  #incoming: CallBody | undefined;
  #identity: Identity | undefined;
  #principal: Principal;
  #slices: ThreadSlices | undefined;
  #body: Body | undefined;
  /** Reason why the body could not be read. */
  #bodyFault: AppError | undefined;
  /** True once the caller's rights are checked. A session in the body no longer changes the caller. */
  #isPermitted = false;

  constructor(dependencies: CallerDependencies, { route, request, query, lifetime }: CallParts) {
    const { peer, traceparent } = request.exchange;
    this.#with = dependencies;
    this.query = query;
    this.#route = route;
    this.#request = request;
    this.#lifetime = lifetime;
    this.#memory = dependencies.bodyMemory.open(peer.remote);
    this.#principal = nobody(traceparent);
  }

  /** The user; without a name until a user is signed in. */
  get principal(): Principal {
    return this.#principal;
  }

  /** `undefined` until a user is signed in. */
  get identity(): Identity | undefined {
    return this.#identity;
  }

  get remote(): string {
    return this.#request.exchange.peer.remote;
  }

  get isSecure(): boolean {
    return this.#request.exchange.peer.protocol === "https";
  }

  /** The tenant that the work is charged to, or the network of an unknown caller. */
  get charged(): string {
    return this.#identity === undefined ? networkOf(this.remote) : this.#principal.tenant;
  }

  /** Slices of work that count for `charged`. */
  get slices(): ThreadSlices {
    if (this.#slices?.tenant !== this.charged) {
      this.#slices = new ThreadSlices(new CallContext(this.charged, this.#with.runtime.clock, this.#lifetime));
    }
    return this.#slices;
  }

  get own(): OwnAddress {
    const { host, protocol } = this.#request.exchange.peer;
    return { host, protocol, publicNames: this.#with.publicNames };
  }

  /** `AppError("signin")` if the endpoint is not public and the call has no valid sign-in. */
  signIn(): Promise<void> | undefined {
    const { traceparent } = this.#request.exchange;
    this.#be(knownIdentity(this.#with.signIn, this.query, { traceparent, remote: this.remote }));
    return this.#identity === undefined ? this.#identify() : undefined;
  }

  async #identify(): Promise<void> {
    this.#be(await identify(this.#with.signIn, this.#caller()));
    if (this.#route.isPublic) return;
    if (this.#identity === undefined && mayCarrySession(this.#request)) await this.#readForm();
    if (this.#identity === undefined) throw notSignedIn(this.#request.headers);
  }

  /**
   * `AppError("denied")` for a caller without the permission. Reads the form of the body first if that may prove the
   * session of the caller.
   */
  permit(): Promise<void> | undefined {
    if (this.#identity?.isProven === false && mayCarrySession(this.#request))
      return this.#readForm().then(() => this.#requireRights());
    this.#requireRights();
    return undefined;
  }

  #requireRights(): void {
    const { permission, events } = this.#route.endpoint;
    if (permission === "public") return;
    if (!this.#isCommand(this.#principal)) requirePermission(this.#principal, permission);
    if (events) requireMayChange(this.#principal);
    this.#isPermitted = true;
  }

  /** The body; a request is read once. */
  body(): Body | Promise<Body> {
    if (this.#body === undefined && !hasBody(this.#request)) this.#body = NO_BODY;
    return this.#body ?? this.#read();
  }

  /** The caller with its present rights; `undefined` if signed out, or without the permission. */
  async present(): Promise<Principal | undefined> {
    const now = await identify(this.#with.signIn, this.#caller());
    return now !== undefined && this.#mayCall(now.principal) ? now.principal : undefined;
  }

  /** As `present`, also for a session that was sent in a form. */
  async isStillAllowed(): Promise<boolean> {
    const session = this.#identity?.session;
    const now =
      session === undefined
        ? await this.present()
        : await this.#with.signIn.bySession(session, this.#request.exchange.traceparent);
    return now !== undefined && this.#mayCall(now);
  }

  /** Releases the uploads and the memory of the body. */
  leaveBody(): void {
    this.#incoming?.removeUploads();
    this.#memory.release();
  }

  #mayCall(principal: Principal): boolean {
    const { permission } = this.#route.endpoint;
    return permission !== "public" && (this.#isCommand(principal) || allows(principal, permission));
  }

  /** True for a command of a job run. It has no permission; the service checks what it may do. */
  #isCommand(principal: Principal): boolean {
    return this.#route.endpoint.commands === true && principal.context !== undefined;
  }

  #caller(): Caller {
    const {
      headers,
      exchange: { traceparent },
    } = this.#request;
    const { commands } = this.#route.endpoint;
    return { headers, query: this.query, own: this.own, remote: this.remote, traceparent, commands };
  }

  /** Looks for a session in the body. Only a caller with the permission gets to know other faults of the body. */
  async #readForm(): Promise<void> {
    try {
      await this.body();
    } catch (error) {
      if (!isAppError(error, "invalid", "syntax")) throw error;
      this.#bodyFault = error;
    }
  }

  async #read(): Promise<Body> {
    // The request is a stream that has been read already.
    if (this.#bodyFault !== undefined) throw this.#bodyFault;
    const { endpoint, bodyBound, isPublic } = this.#route;
    const { runtime, uploads } = this.#with;
    this.#incoming = new CallBody({ runtime, endpoint, request: this.#request, memory: this.#memory, uploads });
    const isStranger = this.#identity === undefined && !isPublic;
    const body = await this.#incoming.read({
      bound: isStranger ? STRANGER_BOUND : bodyBound,
      stranger: isStranger ? { knownBy: async (fields) => (await this.#knownBy(fields), bodyBound) } : undefined,
      slices: this.slices,
      keepsMalformed: endpoint.marksMalformed === true && this.query.get("malformed")?.[0] === "mark",
      beforeFiles: async (fields) => {
        requireMayChange((await this.#knownBy(fields)).principal);
      },
      takeIn: endpoint.takeIn && ((file, fields) => this.#takeIn(file, fields)),
    });
    this.#body = body;
    await this.#signInByForm(body.fields);
    return body;
  }

  /** Gives a file to the endpoint. While its bytes arrive, the call is late only after a silence. */
  async #takeIn({ bytes, ...part }: FileOfBody, body: Fields): Promise<TakenFile> {
    const { endpoint } = this.#route;
    const { headers, params, raw } = this.#request;
    const path = pathFields(params as Readonly<Record<string, string>>);
    const input = readInput(endpoint, { path, query: this.query, body, bodyIsJson: false });
    const expected = expectedBy(headers, this.#route, input);
    this.#with.silence.unhurried(raw);
    const lifetime = this.#lifetime;
    const arriving = async function* (): AsyncGenerator<Uint8Array> {
      for await (const piece of bytes) {
        lifetime.throwIfOver();
        lifetime.setDeadline(HTTP_RECEIVE_DEADLINE_MS);
        yield piece;
      }
    };
    const file = { ...part, principal: this.#principal, input: input as never, expected, bytes: arriving() };
    const taken = await endpoint.takeIn?.(file);
    if (taken === undefined) throw new Error("The endpoint takes no files in.");
    return taken;
  }

  /** The caller; if still unknown, by a session in these fields. `AppError("signin")` without one. */
  async #knownBy(fields: Fields): Promise<Identity> {
    await this.#signInByForm(fields);
    if (this.#identity === undefined) throw notSignedIn(this.#request.headers);
    return this.#identity;
  }

  async #signInByForm(fields: Fields): Promise<void> {
    if (this.#identity?.isProven === true || (this.#identity !== undefined && this.#isPermitted)) return;
    const call = { remote: this.remote, traceparent: this.#request.exchange.traceparent };
    const identity = await identifyByForm(this.#with.signIn, fields, call);
    if (identity !== undefined) this.#be(identity);
  }

  #be(identity: Identity | undefined): void {
    if (identity === undefined) return;
    const { tenant, user } = identity.principal;
    this.#identity = identity;
    this.#principal = identity.principal;
    this.#request.exchange.tenant = tenant;
    this.#request.exchange.user = user;
    this.#memory.ownedBy(identity.principal);
  }
}

/** A class, because V8 keeps what accessors of an object literal refer to until a collection of the whole heap. */
class CallContext implements SliceContext {
  readonly tenant: string;
  readonly clock: Clock;
  readonly #lifetime: CallLifetime;

  constructor(tenant: string, clock: Clock, lifetime: CallLifetime) {
    this.tenant = tenant;
    this.clock = clock;
    this.#lifetime = lifetime;
  }

  /** Made when it is asked for, because most calls end before that. */
  get signal(): AbortSignal {
    return this.#lifetime.signal;
  }
}

function nobody(traceparent: string): Principal {
  return { tenant: "", ospace: "", user: "", groups: [], grants: [], data: [], traceparent };
}

function mayCarrySession(request: FastifyRequest): boolean {
  return request.isMultipart() || /^application\/(x-www-form-urlencoded|json)/i.test(request.exchange.contentType);
}
