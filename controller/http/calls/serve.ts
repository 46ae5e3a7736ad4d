import type { FastifyReply, FastifyRequest } from "fastify";
import { AppError, isAppError } from "../../../common/errors.ts";
import {
  HTTP_CALL_DEADLINE_MS,
  HTTP_RECEIVE_DEADLINE_MS,
  HTTP_SEND_DEADLINE_MS,
  HTTP_TURN_TEXT_MAX_CHARACTERS,
} from "../../../common/limits.ts";
import type { Audit, AuditEntry, AuditInCommits, EntryInCommit } from "../../areas/audit/index.ts";
import { CallDeadline } from "../../store/calls/call-deadline.ts";
import type { ThreadSlices } from "../../turns/slices.ts";
import type { AnswerOptions } from "../answer/answer.ts";
import { acceptsGzip } from "../answer/compress.ts";
import { asAppError, logFault, sendFailure } from "../answer/failure.ts";
import { requireContent } from "../body/content.ts";
import { hasBody } from "../body/call-body.ts";
import { JsonTexts } from "../input/coerce.ts";
import { readLargeInput } from "../input/input.ts";
import { ignoredIn, withWarnings } from "../input/warnings.ts";
import type { Answer, Endpoint } from "../interface/endpoint.ts";
import type { EventStreams, Listening } from "../sockets/events.ts";
import type { Admission } from "./admission.ts";
import { pathFields, pathOf, queryOf } from "./addressed.ts";
import { CallCaller, type CallerDependencies } from "./caller.ts";
import { changedBy } from "./changed.ts";
import { HandedCall } from "./handed.ts";
import { CallLifetime } from "./lifetime.ts";
import type { OpenCalls } from "./open-calls.ts";
import { routeOf, type Route } from "./route.ts";
import { stillMay, type Standing } from "./standing.ts";

export interface ServeDependencies extends CallerDependencies {
  readonly audit: Audit & Partial<AuditInCommits>;
  readonly admission: Admission;
  /** Limits calls without a session, by address, so that one address does not take the places of others. */
  readonly strangers: Admission;
  readonly eventStreams: EventStreams;
  readonly openCalls: OpenCalls;
  readonly standing: Standing;
  /** True if the stores are separate programs, which may be unavailable. Each call then gets a `CallDeadline`. */
  readonly storesAreRemote: boolean;
}

export type Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>;

/** Does everything that is the same for all endpoints, around the handler of one. */
export function serve(dependencies: ServeDependencies, endpoint: Endpoint): Handler {
  const route = routeOf(endpoint);
  return async (request, reply) => {
    request.exchange.route = endpoint.path;
    const call = new ServedCall(dependencies, route, request, reply);
    try {
      await call.serve();
    } catch (error) {
      const failure = asAppError(error);
      logFault(dependencies.runtime.log, failure, request.exchange.traceparent);
      if (!reply.sent) sendFailure(request, reply, failure);
    } finally {
      call.end();
    }
    return reply;
  };
}

/** One call of one endpoint, from sign-in to the end of its answer. */
class ServedCall implements AnswerOptions {
  readonly #with: ServeDependencies;
  readonly #route: Route;
  readonly #request: FastifyRequest;
  readonly #reply: FastifyReply;
  readonly #lifetime: CallLifetime;
  readonly #caller: CallCaller;
  /** Deadline for all store calls that this call makes; absent if the stores are in this process. */
  readonly #storeDeadline: CallDeadline | undefined;
  #leaveStanding: (() => void) | undefined;
  /** Gives back the place among the calls of the tenant. */
  #exit: (() => void) | undefined;
  /** Names of what the call changes, set when its input is read. */
  #changed: string | undefined;
  /** Entry about the success of the call, for the commit of its change. */
  #entry: EntryInCommit | undefined;
  #isWorking = false;

  constructor(dependencies: ServeDependencies, route: Route, request: FastifyRequest, reply: FastifyReply) {
    this.#with = dependencies;
    this.#route = route;
    this.#request = request;
    this.#reply = reply;
    const { runtime, openCalls, storesAreRemote } = dependencies;
    // It may throw: before that, nothing is open.
    const query = queryOf(request.url);
    const lifetime = new CallLifetime(runtime.clock, openCalls);
    this.#lifetime = lifetime;
    this.#caller = new CallCaller(dependencies, { route, request, query, lifetime });
    this.#storeDeadline = storesAreRemote ? this.#deadlineOfStores() : undefined;
    // A slow upload is no slow call: the call's own time begins when its body has arrived.
    this.#lifetime.setDeadline(hasBody(request) ? HTTP_RECEIVE_DEADLINE_MS : HTTP_CALL_DEADLINE_MS);
    reply.raw.once("close", () => {
      if (!reply.raw.writableFinished) this.#lifetime.end(new AppError("cancelled", "The client went away."));
    });
  }

  serve(): Promise<void> {
    return this.#storeDeadline === undefined ? this.#serve() : this.#storeDeadline.run(() => this.#serve());
  }

  async #serve(): Promise<void> {
    await this.#caller.signIn();
    if (!this.#route.isPublic) await this.#permit();
    const answer = await this.#run();
    try {
      await this.#route.send(this.#reply, answer, this);
    } finally {
      this.#leave();
    }
  }

  /** Refuses a caller without the permission. Refuses every change while it could not be recorded. */
  async #permit(): Promise<void> {
    try {
      await this.#caller.permit();
    } catch (error) {
      if (isAppError(error, "denied")) await this.#record("denied", "denied");
      throw error;
    }
    if (this.#route.isChange) await this.#with.audit.ready(this.#caller.principal.tenant);
  }

  async #run(): Promise<Answer<unknown>> {
    const { admission, strangers } = this.#with;
    const gate = this.#caller.identity === undefined ? strangers : admission;
    this.#exit = await gate.enter(this.#caller.charged, this.#lifetime);
    this.#stand();
    const work = this.#work();
    this.#isWorking = true;
    try {
      const answer = await this.#lifetime.until(work);
      if (this.#route.isChange && this.#entry?.isDurable() !== true) await this.#record("ok", "ok");
      return answer;
    } catch (error) {
      // Work that ignores the signal keeps its place until it really ends.
      const leave = (): void => this.#leave();
      void work.then(leave, leave);
      const { code } = asAppError(error);
      if (this.#route.isChange) await this.#record(code === "denied" ? "denied" : "failed", code);
      throw error;
    }
  }

  get signal(): AbortSignal {
    return this.#lifetime.signal;
  }

  get slices(): ThreadSlices {
    return this.#caller.slices;
  }

  get takesGzip(): boolean {
    // A page of another site could learn the content of an answer from its compressed length.
    return acceptsGzip(this.#request.headers["accept-encoding"]) && this.#caller.identity?.isProven !== false;
  }

  get secure(): boolean {
    return this.#caller.isSecure;
  }

  /** Makes the call an open stream, and gives back its place among the tenant's calls. */
  listen(): Listening {
    const { runtime, eventStreams } = this.#with;
    const stops = (): void => this.#lifetime.end(new AppError("unavailable", "The controller stops."));
    const gone = eventStreams.enter(this.#caller.principal.tenant, stops);
    this.#lifetime.signal.addEventListener("abort", gone);
    this.#lifetime.cancelDeadline();
    this.#storeDeadline?.end();
    this.#leave();
    const stillAllowed = async (): Promise<boolean> => (await this.#caller.present()) !== undefined;
    return { clock: runtime.clock, over: this.#lifetime.signal, stillAllowed };
  }

  onSending(): void {
    this.#lifetime.setDeadline(Math.max(HTTP_SEND_DEADLINE_MS, this.#lifetime.deadlineMs));
  }

  onBroken(error: unknown): void {
    const { exchange } = this.#request;
    exchange.code = asAppError(error).code;
    const facts = { err: error, traceparent: exchange.traceparent };
    this.#with.runtime.log.warn(facts, "an answer broke off after its head was sent");
  }

  end(): void {
    this.#lifetime.leave();
    this.#leaveStanding?.();
    this.#storeDeadline?.end();
    if (this.#route.endpoint.events) this.#lifetime.end(new AppError("cancelled", "The event stream is over."));
    if (!this.#isWorking) this.#caller.leaveBody();
  }

  /** Releases what the work of the call holds. */
  #leave(): void {
    this.#exit?.();
    this.#caller.leaveBody();
  }

  #deadlineOfStores(): CallDeadline {
    const { waitMs } = this.#route;
    return new CallDeadline({
      clock: this.#with.runtime.clock,
      lengthMs: waitMs,
      atEnd: (parts) =>
        this.#lifetime.end(
          new AppError("deadline", `${parts} did not answer in the ${String(waitMs)} ms this call has.`),
        ),
    });
  }

  /** A call that only reads, also as a stream, ends when the caller loses the right. A change runs to its end. */
  #stand(): void {
    if (this.#caller.identity === undefined || this.#route.isPublic || this.#route.isChange) return;
    this.#leaveStanding = this.#with.standing.enter(this.#caller.principal, () => void this.#ask());
  }

  async #ask(): Promise<void> {
    const isAllowed = await stillMay(this.#caller.isStillAllowed());
    if (!isAllowed) this.#lifetime.end(new AppError("denied", "The user is signed out, or lost the permission."));
  }

  async #work(): Promise<Answer<unknown>> {
    const { endpoint, isChange } = this.#route;
    const lifetime = this.#lifetime;
    const { query } = this.#caller;
    const body = await this.#caller.body();
    if (!lifetime.isOver) lifetime.setDeadline(HTTP_CALL_DEADLINE_MS);
    const params = this.#pathNames();
    const sources = { path: pathFields(params), query, body: body.fields, bodyIsJson: body.isJson };
    const texts = new JsonTexts(HTTP_TURN_TEXT_MAX_CHARACTERS);
    const input = await readLargeInput(endpoint, sources, { texts, work: this.#caller });
    if (isChange) this.#changed = changedBy({ path: params, input, files: body.files, secrets: endpoint.secrets });
    requireContent(endpoint, { input, query, body });
    if (!lifetime.isOver && endpoint.deadlineMs) lifetime.setDeadline(endpoint.deadlineMs(input as never));
    const ignored = await ignoredIn(endpoint, { ...sources, sent: body }, { texts, work: this.#caller });
    // If the call has ended, its answer may say that nothing was done, so the handler must not begin.
    lifetime.throwIfOver();
    if (endpoint.entryInCommit)
      this.#entry = this.#with.audit.inCommit?.(this.#entryOf("ok", "ok"), this.#caller.principal.ospace);
    const served = {
      route: this.#route,
      caller: this.#caller,
      lifetime,
      request: this.#request,
      entry: this.#entry,
    };
    const handed = new HandedCall(served, input as never, body);
    lifetime.hasBegun = true;
    return withWarnings(await endpoint.handler(handed), ignored);
  }

  #pathNames(): Readonly<Record<string, string>> {
    return this.#request.params as Readonly<Record<string, string>>;
  }

  #record(outcome: AuditEntry["outcome"], code: string): Promise<void> {
    return this.#with.audit.record(this.#entryOf(outcome, code));
  }

  #entryOf(outcome: AuditEntry["outcome"], code: string): AuditEntry {
    const { tenant, user, traceparent } = this.#caller.principal;
    return {
      tenant,
      user,
      permission: this.#route.endpoint.permission,
      action: `${this.#request.method} ${pathOf(this.#request.url)}`,
      object: this.#changed ?? changedBy({ path: this.#pathNames() }),
      outcome,
      code,
      remote: this.#caller.remote,
      traceparent,
    };
  }
}
