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
  /** Limits calls without a session, by address, so that one address does not take the places of others. */
  readonly strangers: Admission;
  readonly bodyMemory: BodyMemory;
  readonly eventStreams: EventStreams;
  readonly openCalls: OpenCalls;
  readonly standing: Standing;
  readonly publicNames: readonly string[];
  /** True if the stores are separate programs, which may be unavailable. Each call then gets a `CallDeadline`. */
  readonly storesAreRemote: boolean;
  /** Folder for uploads. They are removed after their call. */
  readonly uploads: string;
}

export type Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>;

/** Does everything that is the same for all endpoints, around the handler of one. */
export function serve(dependencies: ServeDependencies, endpoint: Endpoint): Handler {
  const send = answerSender(endpoint);
  return async (request, reply) => {
    request.exchange.route = endpoint.path;
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
  /** Deadline for all store calls that this call makes. */
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
  /** Reason why the body could not be read. */
  #bodyFault: AppError | undefined;
  /** Names of what the call changes, set when its input is read. */
  #changed: string | undefined;
  #working = false;
  /** True once the endpoint's handler is called. Before that, nothing was changed. */
  #begun = false;
  /** True once the caller's rights are checked. A session in the body no longer changes the caller. */
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
    // A slow upload is no slow call: the call's own time begins when its body has arrived.
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

  /** Refuses a caller without the permission. Refuses every change while it could not be recorded. */
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

  /** Call `leave` after the answer is sent. It releases what the call holds. */
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
      // Work that ignores the signal keeps its place until it really ends.
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
      // A page of another site could learn the content of an answer from its compressed length.
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

  /** Ends a call that outlasts a stop of the controller. If its handler has begun, it may have changed something. */
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

  /** Releases the uploads and the memory of the body. */
  #leaveBody(): void {
    this.#incoming.removeUploads();
    this.#memory.release();
  }

  /** Makes the call an open stream, and gives back its place among the tenant's calls. */
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

  /** A call that only reads, also as a stream, ends when the caller loses the right. A change runs to its end. */
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
    // `#present` does not find a session that was sent in a form.
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

  /** True for a command of a job run. It has no permission; the service checks what it may do. */
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
    // If the call has ended, its answer may say that nothing was done, so the handler must not begin.
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

  /** Looks for a session in the body. Only a caller with the permission gets to know other faults of the body. */
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
    // The request is a stream that has been read already.
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

  /** The caller; if still unknown, by a session in these fields. `AppError("signin")` without one. */
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

  /** True for a change, and for a call that may wait long. */
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

/** Maximum bytes of a body while its caller is unknown. */
const STRANGER_BOUND: Bound = { name: "HTTP_BODY_MAX_BYTES", max: HTTP_BODY_MAX_BYTES };

function bodyBoundOf({ bodyMaxBytes, permission }: Endpoint): Bound {
  if (bodyMaxBytes !== undefined) return { name: "bodyMaxBytes", max: bodyMaxBytes };
  if (permission === "public") return { name: "HTTP_PUBLIC_BODY_MAX_BYTES", max: HTTP_PUBLIC_BODY_MAX_BYTES };
  return { name: "HTTP_BODY_MAX_BYTES", max: HTTP_BODY_MAX_BYTES };
}

/** The path without the query, which may contain secrets. */
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
