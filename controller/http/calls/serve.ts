import type { FastifyReply, FastifyRequest } from "fastify";
import { AppError, isAppError } from "../../../common/errors.ts";
import {
  CALL_CHANGE_WAIT_MS,
  CALL_READ_WAIT_MS,
  HTTP_BODY_MAX_BYTES,
  HTTP_CALL_DEADLINE_MS,
  HTTP_PUBLIC_BODY_MAX_BYTES,
  HTTP_RECEIVE_DEADLINE_MS,
  HTTP_SEND_DEADLINE_MS,
  HTTP_TURN_TEXT_MAX_CHARACTERS,
} from "../../../common/limits.ts";
import type { Bound } from "../../../common/json-decoder.ts";
import { networkOf } from "../../settings/network.ts";
import type { Audit } from "../../areas/audit/index.ts";
import { allows, requireMayChange, requirePermission, type Principal } from "../../areas/permissions/index.ts";
import type { Runtime } from "../../runtime.ts";
import { CallDeadline } from "../../store/call-deadline.ts";
import type { Admission } from "./admission.ts";
import { answerSender, ticketCookie, type AnswerOptions } from "../answer/answer.ts";
import { NO_BODY, type Body } from "../body/body.ts";
import type { BodyMemory, CallMemory } from "../body/memory.ts";
import { CallBody } from "../body/call-body.ts";
import { CallLifetime } from "./lifetime.ts";
import { acceptsGzip } from "../answer/compress.ts";
import { changedBy } from "./changed.ts";
import { requireContent } from "../body/content.ts";
import { JsonTexts } from "../input/coerce.ts";
import type { Answer, Call, Endpoint } from "../interface/endpoint.ts";
import type { EventStreams, Listening } from "../sockets/events.ts";
import type { OpenCalls } from "./open-calls.ts";
import { asAppError, logFault, sendFailure } from "../answer/failure.ts";
import type { Fields } from "../body/fields.ts";
import { parseUrlEncoded } from "../body/form-decoder.ts";
import { namesVersion } from "../answer/head.ts";
import { readLargeInput } from "../input/input.ts";
import { maySignIn, type OwnAddress } from "../connections/origin.ts";
import { ThreadSlices } from "../../turns/slices.ts";
import { cookieIn, identify, identifyByForm, type Caller, type Identity, type SignIn } from "./signin.ts";
import { stillMay, type Standing } from "./standing.ts";
import { ignoredBody, ignoredMembers, ignoredNames, withWarnings } from "../input/warnings.ts";

export interface ServeDependencies {
  readonly runtime: Runtime;
  readonly signIn: SignIn;
  readonly audit: Audit;
  readonly admission: Admission;
  /** Calls without a session, by address: the calls of one address take no place of others. */
  readonly strangers: Admission;
  readonly bodyMemory: BodyMemory;
  readonly eventStreams: EventStreams;
  readonly openCalls: OpenCalls;
  readonly standing: Standing;
  readonly publicNames: readonly string[];
  /** The stores are other programs, which may be away: each call gets a `CallDeadline`. */
  readonly storesAreRemote: boolean;
  /** Uploads lie here for the time of their call. */
  readonly uploads: string;
}

export type Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>;

/** Everything that is the same for all endpoints, around the handler of one. */
export function serve(dependencies: ServeDependencies, endpoint: Endpoint): Handler {
  const send = answerSender(endpoint);
  return async (request, reply) => {
    const call = new ServedCall(dependencies, endpoint, request, reply);
    const gone = dependencies.openCalls.enter(() => call.stop());
    const served = async (): Promise<void> => {
      await call.signIn();
      await call.permit();
      const { answer, leave } = await call.run();
      try {
        await send(reply, answer, call.answerOptions(leave));
      } finally {
        leave();
      }
    };
    try {
      await (dependencies.storesAreRemote ? call.storeDeadline.run(served) : served());
    } catch (error) {
      const failure = asAppError(error);
      logFault(dependencies.runtime.log, failure, request.exchange.traceparent);
      if (!reply.sent) sendFailure(request, reply, failure);
    } finally {
      gone();
      call.end();
    }
    return reply;
  };
}

/** One call of one endpoint, from sign-in to the end of its answer. */
class ServedCall {
  /** For all the stores are asked for by this call. */
  readonly storeDeadline: CallDeadline;
  readonly #dependencies: ServeDependencies;
  readonly #endpoint: Endpoint;
  readonly #request: FastifyRequest;
  readonly #reply: FastifyReply;
  readonly #query: Fields;
  readonly #lifetime: CallLifetime;
  readonly #memory: CallMemory;
  readonly #incoming: CallBody;
  #leaveStanding: () => void = () => {};
  #identity: Identity | undefined;
  #body: Body | undefined;
  /** Why the body could not be read. */
  #bodyFault: AppError | undefined;
  /** Names of what the call changes, set when its input is read. */
  #changed: string | undefined;
  #working = false;
  /** True from the call of the handler on: before it, nothing was changed. */
  #begun = false;
  /** From here on the caller is known: the rights of that principal were asked. */
  #permitted = false;

  constructor(dependencies: ServeDependencies, endpoint: Endpoint, request: FastifyRequest, reply: FastifyReply) {
    this.#dependencies = dependencies;
    this.#endpoint = endpoint;
    this.#request = request;
    this.#reply = reply;
    this.#query = queryOf(request.url);
    const { runtime, bodyMemory, uploads } = dependencies;
    this.#lifetime = new CallLifetime(runtime.clock);
    this.#memory = bodyMemory.open(request.exchange.peer.remote);
    this.#incoming = new CallBody({ runtime, endpoint, request, memory: this.#memory, uploads });
    const lengthMs = this.#mayWaitForChange() ? CALL_CHANGE_WAIT_MS : CALL_READ_WAIT_MS;
    this.storeDeadline = new CallDeadline({
      clock: runtime.clock,
      lengthMs,
      atEnd: (parts) =>
        this.#lifetime.end(
          new AppError("deadline", `${parts} did not answer in the ${String(lengthMs)} ms this call has.`),
        ),
    });
    // A long upload over a thin line is no slow call: the call's own time begins when its body is there.
    this.#lifetime.setDeadline(
      request.body === undefined && !request.isMultipart() ? HTTP_CALL_DEADLINE_MS : HTTP_RECEIVE_DEADLINE_MS,
    );
    reply.raw.once("close", () => {
      if (!reply.raw.writableFinished) this.#lifetime.end(new AppError("cancelled", "The client went away."));
    });
  }

  async signIn(): Promise<void> {
    this.#identity = await identify(this.#dependencies.signIn, this.#caller());
    if (this.#identity === undefined && !this.#isPublic() && mayCarrySession(this.#request)) await this.#readForm();
    if (this.#identity === undefined && !this.#isPublic()) throw notSignedIn();
    this.#note();
  }

  /** Refuses a caller without the permission, and every change while it could not be recorded. */
  async permit(): Promise<void> {
    const { permission } = this.#endpoint;
    if (permission === "public") return;
    try {
      if (this.#identity?.isProven === false && mayCarrySession(this.#request)) await this.#readForm();
      if (!this.#isCommand(this.#principal())) requirePermission(this.#principal(), permission);
      if (this.#endpoint.events) requireMayChange(this.#principal());
    } catch (error) {
      if (isAppError(error, "denied")) await this.#record("denied", "denied");
      throw error;
    }
    this.#permitted = true;
    if (this.#isChange()) await this.#dependencies.audit.ready(this.#principal().tenant);
  }

  /** `leave` is to be called when the answer is sent; it gives back what the call held. */
  async run(): Promise<{ readonly answer: Answer<unknown>; readonly leave: () => void }> {
    const { signal } = this.#lifetime;
    const { admission, strangers } = this.#dependencies;
    const exit = await (this.#identity === undefined
      ? strangers.enter(networkOf(this.#remote()), signal)
      : admission.enter(this.#principal().tenant, signal));
    const leave = (): void => {
      exit();
      this.#leaveBody();
    };
    this.#stand();
    const work = this.#work();
    this.#working = true;
    try {
      const answer = await this.#lifetime.until(work);
      await this.#recordChange("ok");
      return { answer, leave };
    } catch (error) {
      // Work that does not heed the signal keeps its place until it really ends.
      void work.then(leave, leave);
      await this.#recordChange(asAppError(error).code);
      throw error;
    }
  }

  answerOptions(leave: () => void): AnswerOptions {
    return {
      listen: () => this.#listen(leave),
      signal: this.#lifetime.signal,
      slices: this.#slices(),
      // To a page of another site that makes a browser ask, the length of what is compressed could tell what is in it.
      takesGzip: acceptsGzip(this.#request.headers["accept-encoding"]) && this.#identity?.isProven !== false,
      secure: this.#isSecure(),
      onSending: () => this.#lifetime.setDeadline(Math.max(HTTP_SEND_DEADLINE_MS, this.#lifetime.deadlineMs)),
      onBroken: (error) => {
        const { exchange } = this.#request;
        exchange.code = asAppError(error).code;
        this.#dependencies.runtime.log.warn(
          { err: error, traceparent: exchange.traceparent },
          "an answer broke off after its head was sent",
        );
      },
    };
  }

  /** The controller stops, and the call took too long to end by itself. A statement or script may have changed things. */
  stop(): void {
    this.#lifetime.end(
      this.#begun
        ? new AppError("unknown_outcome", "The controller stops: what this call changes may be done, or done in part.")
        : new AppError("unavailable", "The controller stops."),
    );
  }

  end(): void {
    this.#lifetime.cancelDeadline();
    this.#leaveStanding();
    this.storeDeadline.end();
    if (this.#endpoint.events) this.#lifetime.end(new AppError("cancelled", "The event stream is over."));
    if (!this.#working) this.#leaveBody();
  }

  /** Neither what was uploaded nor what was read is needed any more. */
  #leaveBody(): void {
    this.#incoming.removeUploads();
    this.#memory.release();
  }

  /** From here on the call is an open stream, whose place among the tenant's calls is given back. */
  #listen(leave: () => void): Listening {
    const { runtime, eventStreams } = this.#dependencies;
    const stops = (): void => this.#lifetime.end(new AppError("unavailable", "The controller stops."));
    const gone = eventStreams.enter(this.#principal().tenant, stops);
    this.#lifetime.signal.addEventListener("abort", gone);
    this.#lifetime.cancelDeadline();
    this.storeDeadline.end();
    leave();
    const stillAllowed = async (): Promise<boolean> => (await this.#present()) !== undefined;
    return { clock: runtime.clock, over: this.#lifetime.signal, stillAllowed };
  }

  /** A call that only reads, streams among them, ends with the right to it. A change is made to its end. */
  #stand(): void {
    if (this.#identity === undefined || this.#isPublic() || this.#isChange()) return;
    this.#leaveStanding = this.#dependencies.standing.enter(this.#principal(), () => void this.#ask());
  }

  async #ask(): Promise<void> {
    const isAllowed = await stillMay(this.#isStillAllowed());
    if (!isAllowed) this.#lifetime.end(new AppError("denied", "The user is signed out, or lost the permission."));
  }

  async #isStillAllowed(): Promise<boolean> {
    const { permission } = this.#endpoint;
    const session = this.#identity?.session;
    // A session of a form is not found again where calls name theirs.
    const now =
      session === undefined
        ? await this.#present()
        : await this.#dependencies.signIn.bySession(session, this.#request.exchange.traceparent);
    return now !== undefined && permission !== "public" && (this.#isCommand(now) || allows(now, permission));
  }

  async #present(): Promise<Principal | undefined> {
    const { permission } = this.#endpoint;
    const now = await identify(this.#dependencies.signIn, this.#caller());
    if (now === undefined || permission === "public") return undefined;
    return this.#isCommand(now.principal) || allows(now.principal, permission) ? now.principal : undefined;
  }

  /** It has no permission, and its service knows the one thing that is open to it. */
  #isCommand(principal: Principal): boolean {
    return this.#endpoint.commands === true && principal.context !== undefined;
  }

  async #work(): Promise<Answer<unknown>> {
    await this.#readBody();
    if (!this.#lifetime.isOver) this.#lifetime.setDeadline(HTTP_CALL_DEADLINE_MS);
    const body = this.#body ?? NO_BODY;
    const path = pathFields(this.#pathNames());
    const sources = { path, query: this.#query, body: body.fields, bodyIsJson: body.isJson };
    const texts = new JsonTexts(HTTP_TURN_TEXT_MAX_CHARACTERS);
    const slices = this.#slices();
    const input = await readLargeInput(this.#endpoint, sources, { texts, slices });
    if (this.#isChange()) this.#changed = changedBy({ path: this.#pathNames(), input, files: body.files });
    requireContent(this.#endpoint, { input, query: this.#query, body });
    const { deadlineMs } = this.#endpoint;
    if (!this.#lifetime.isOver && deadlineMs) this.#lifetime.setDeadline(deadlineMs(input as never));
    const call: Call<unknown> = {
      principal: this.#principal(),
      input,
      files: body.files,
      text: body.text,
      malformed: body.malformed,
      client: this.#client(),
      signal: this.#lifetime.signal,
      present: () => this.#present(),
    };
    const members = await ignoredMembers(this.#endpoint, sources, { texts, slices });
    const ignored = [...ignoredNames(this.#endpoint, sources), ...members, ...ignoredBody(this.#endpoint, body)];
    // The caller has its answer by now, which may say that nothing was done.
    call.signal.throwIfAborted();
    this.#begun = true;
    return withWarnings(await this.#endpoint.handler(call as Call<never>), ignored);
  }

  /** Slices of work that count for the caller's tenant, or for the caller's network while the caller is unknown. */
  #slices(): ThreadSlices {
    const { clock } = this.#dependencies.runtime;
    const tenant = this.#identity === undefined ? networkOf(this.#remote()) : this.#principal().tenant;
    return new ThreadSlices({ tenant, clock, signal: this.#lifetime.signal });
  }

  #client(): Call<unknown>["client"] {
    const { headers } = this.#request;
    const holds = (etag: string): boolean => namesVersion(headers["if-none-match"], etag);
    const browser = /text\/html/i.test(headers.accept ?? "");
    const lastEventId = headers["last-event-id"];
    return {
      remote: this.#remote(),
      session: this.#identity?.session,
      maySignIn: maySignIn(headers, this.#own()),
      ticket: cookieIn(headers.cookie, ticketCookie(this.#isSecure())),
      browser,
      holds,
      lastEventId: typeof lastEventId === "string" ? lastEventId : undefined,
    };
  }

  #caller(): Caller {
    const {
      headers,
      exchange: { peer, traceparent },
    } = this.#request;
    const { commands } = this.#endpoint;
    return { headers, query: this.#query, own: this.#own(), remote: peer.remote, traceparent, commands };
  }

  #own(): OwnAddress {
    const { host, protocol } = this.#request.exchange.peer;
    return { host, protocol, publicNames: this.#dependencies.publicNames };
  }

  /** For the session it may carry. Other faults of the body are reported only to a caller with the permission. */
  async #readForm(): Promise<void> {
    try {
      await this.#readBody();
    } catch (error) {
      if (!isAppError(error, "invalid", "syntax")) throw error;
      this.#bodyFault = error;
    }
  }

  async #readBody(): Promise<void> {
    if (this.#body !== undefined) return;
    // The request is a stream, and is over.
    if (this.#bodyFault !== undefined) throw this.#bodyFault;
    const bound = bodyBoundOf(this.#endpoint);
    const isStranger = this.#identity === undefined && !this.#isPublic();
    this.#body = await this.#incoming.read({
      bound: isStranger ? STRANGER_BOUND : bound,
      stranger: isStranger ? { knownBy: async (fields) => (await this.#knownBy(fields), bound) } : undefined,
      slices: this.#slices(),
      keepsMalformed: this.#endpoint.marksMalformed === true && this.#query.get("malformed")?.[0] === "mark",
      beforeFiles: async (fields) => {
        requireMayChange((await this.#knownBy(fields)).principal);
      },
    });
    await this.#signInByForm(this.#body.fields);
  }

  /** The caller, by these fields if by nothing else. */
  async #knownBy(fields: Fields): Promise<Identity> {
    await this.#signInByForm(fields);
    if (this.#identity === undefined) throw notSignedIn();
    return this.#identity;
  }

  async #signInByForm(fields: Fields): Promise<void> {
    if (this.#identity?.isProven === true || (this.#identity !== undefined && this.#permitted)) return;
    const call = { remote: this.#remote(), traceparent: this.#request.exchange.traceparent };
    this.#identity = (await identifyByForm(this.#dependencies.signIn, fields, call)) ?? this.#identity;
    this.#note();
  }

  #note(): void {
    const { tenant, user } = this.#principal();
    Object.assign(this.#request.exchange, { tenant, user });
    if (this.#identity !== undefined) this.#memory.ownedBy({ tenant, user });
  }

  #principal(): Principal {
    return this.#identity?.principal ?? nobody(this.#request.exchange.traceparent);
  }

  #pathNames(): Readonly<Record<string, string>> {
    return this.#request.params as Readonly<Record<string, string>>;
  }

  #remote(): string {
    return this.#request.exchange.peer.remote;
  }

  #isSecure(): boolean {
    return this.#request.exchange.peer.protocol === "https";
  }

  #isPublic(): boolean {
    return this.#endpoint.permission === "public";
  }

  #isChange(): boolean {
    return !this.#isPublic() && !this.#endpoint.permission.endsWith(":read");
  }

  /** A change, or a call that waits for something long. */
  #mayWaitForChange(): boolean {
    return this.#isChange() || this.#endpoint.deadlineMs !== undefined;
  }

  async #recordChange(code: string): Promise<void> {
    if (!this.#isChange()) return;
    await this.#record(code === "ok" ? "ok" : code === "denied" ? "denied" : "failed", code);
  }

  async #record(outcome: "ok" | "denied" | "failed", code: string): Promise<void> {
    const { tenant, user, traceparent } = this.#principal();
    const action = `${this.#request.method} ${pathOf(this.#request.url)}`;
    const entry = {
      tenant,
      user,
      permission: this.#endpoint.permission,
      action,
      object: this.#changed ?? changedBy({ path: this.#pathNames() }),
      outcome,
      code,
      remote: this.#remote(),
      traceparent,
    };
    await this.#dependencies.audit.record(entry);
  }
}

/** Bound of a body while its caller is not known. */
const STRANGER_BOUND: Bound = { name: "HTTP_BODY_MAX_BYTES", max: HTTP_BODY_MAX_BYTES };

function bodyBoundOf({ bodyMaxBytes, permission }: Endpoint): Bound {
  if (bodyMaxBytes !== undefined) return { name: "bodyMaxBytes", max: bodyMaxBytes };
  if (permission === "public") return { name: "HTTP_PUBLIC_BODY_MAX_BYTES", max: HTTP_PUBLIC_BODY_MAX_BYTES };
  return { name: "HTTP_BODY_MAX_BYTES", max: HTTP_BODY_MAX_BYTES };
}

/** The path without its query, which may carry secrets. */
export function pathOf(url: string): string {
  return url.split("?", 1)[0] ?? url;
}

/** Query of a request target. */
export function queryOf(url: string): Fields {
  const mark = url.indexOf("?");
  return parseUrlEncoded(mark < 0 ? "" : url.slice(mark + 1));
}

const NO_FIELDS: Fields = new Map();

function pathFields(params: Readonly<Record<string, string>>): Fields {
  const names = Object.keys(params);
  return names.length === 0 ? NO_FIELDS : new Map(names.map((name) => [name, [params[name]]]));
}

export function notSignedIn(): AppError {
  return new AppError("signin", "Nobody is signed in.");
}

function nobody(traceparent: string): Principal {
  return { tenant: "", ospace: "", user: "", groups: [], grants: [], data: [], traceparent };
}

function mayCarrySession(request: FastifyRequest): boolean {
  return request.isMultipart() || /^application\/(x-www-form-urlencoded|json)/i.test(request.exchange.contentType);
}
