import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { FastifyReply, FastifyRequest } from "fastify";
import { AppError, isAppError } from "../../common/errors.ts";
import { HTTP_ANONYMOUS_BODY_MAX_BYTES, HTTP_CALL_DEADLINE_MS, HTTP_RECEIVE_DEADLINE_MS } from "../../common/limits.ts";
import type { Audit } from "../areas/audit/index.ts";
import { requirePermission, type Principal } from "../areas/permissions/index.ts";
import type { Runtime } from "../runtime.ts";
import type { Admission } from "./admission.ts";
import { answerSender } from "./answer.ts";
import { interpret, NO_BODY, readText, type Body } from "./body.ts";
import type { Answer, Call, Endpoint } from "./endpoint.ts";
import { asAppError, logFault, sendFailure } from "./failure.ts";
import { type Fields, parseUrlEncoded } from "./fields.ts";
import { readInput } from "./input.ts";
import { readMultipart } from "./multipart.ts";
import { identify, identifyByForm, type Identity, type SignIn } from "./signin.ts";

export interface ServeDependencies {
  readonly runtime: Runtime;
  readonly signIn: SignIn;
  readonly audit: Audit;
  readonly admission: Admission;
  /** Uploads lie here for the time of their call. */
  readonly uploads: string;
}

export type Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>;

/** Everything that is the same for all endpoints, around the handler of one. */
export function serve(dependencies: ServeDependencies, endpoint: Endpoint): Handler {
  const send = answerSender(endpoint.output);
  return async (request, reply) => {
    const visit = new Visit(dependencies, endpoint, request, reply);
    try {
      await visit.signIn();
      await visit.permit();
      const { answer, leave } = await visit.run();
      try {
        await send(reply, answer, visit.answerOptions());
      } finally {
        leave();
      }
    } catch (error) {
      const failure = asAppError(error);
      logFault(dependencies.runtime.log, failure, request.exchange.traceparent);
      if (!reply.sent) sendFailure(request, reply, failure);
    } finally {
      visit.end();
    }
    return reply;
  };
}

/** One call of one endpoint, from sign-in to the end of its answer. */
class Visit {
  readonly #dependencies: ServeDependencies;
  readonly #endpoint: Endpoint;
  readonly #request: FastifyRequest;
  readonly #reply: FastifyReply;
  readonly #query: Fields;
  readonly #abort = new AbortController();
  #cancelDeadline: () => void = () => {};
  #folder: string | undefined;
  /** Why the call is over before its work is done. */
  #over: AppError | undefined;
  /** Tells whoever waits for the work that the call is over. */
  #stop: (reason: AppError) => void = () => {};
  #identity: Identity | undefined;
  #body: Body | undefined;
  #working = false;

  constructor(dependencies: ServeDependencies, endpoint: Endpoint, request: FastifyRequest, reply: FastifyReply) {
    this.#dependencies = dependencies;
    this.#endpoint = endpoint;
    this.#request = request;
    this.#reply = reply;
    this.#query = request.query as Fields;
    // A long upload over a thin line is no slow call: the call's own time begins when its body is there.
    this.#setDeadline(
      request.body === undefined && !request.isMultipart() ? HTTP_CALL_DEADLINE_MS : HTTP_RECEIVE_DEADLINE_MS,
    );
    reply.raw.once("close", () => {
      if (!reply.raw.writableFinished) this.#end(new AppError("cancelled", "The client went away."));
    });
  }

  async signIn(): Promise<void> {
    const { headers, exchange, ip } = this.#request;
    const { signIn } = this.#dependencies;
    this.#identity = await identify(signIn, {
      headers,
      query: this.#query,
      remote: ip,
      traceparent: exchange.traceparent,
    });
    if (this.#identity === undefined && !this.#isPublic() && mayCarrySession(this.#request)) await this.#readForm();
    if (this.#identity === undefined && !this.#isPublic()) throw notSignedIn();
    exchange.tenant = this.#principal().tenant;
    exchange.user = this.#principal().user;
  }

  /** Refuses who lacks the permission, and every change while it could not be recorded. */
  async permit(): Promise<void> {
    const { permission } = this.#endpoint;
    if (permission === "public") return;
    try {
      requirePermission(this.#principal(), permission);
      if (this.#isChange() && this.#identity?.byCookie === true) checkSite(this.#request);
    } catch (error) {
      await this.#record("denied", "denied");
      throw error;
    }
    if (this.#isChange()) await this.#dependencies.audit.ready(this.#principal().tenant);
  }

  /** `leave` is to be called when the answer is sent; it gives back what the call held. */
  async run(): Promise<{ readonly answer: Answer<unknown>; readonly leave: () => void }> {
    const { signal } = this.#abort;
    const exit = await this.#dependencies.admission.enter(this.#principal().tenant, signal);
    const leave = (): void => {
      exit();
      this.#removeUploads();
    };
    const work = this.#work();
    this.#working = true;
    try {
      const answer = await this.#untilOver(work);
      await this.#recordChange("ok");
      return { answer, leave };
    } catch (error) {
      // Work that does not heed the signal keeps its place until it really ends.
      void work.then(leave, leave);
      await this.#recordChange(asAppError(error).code);
      throw error;
    }
  }

  answerOptions(): { signal: AbortSignal; secure: boolean; onBroken: (error: unknown) => void } {
    return {
      signal: this.#abort.signal,
      secure: this.#request.protocol === "https",
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

  end(): void {
    this.#cancelDeadline();
    if (!this.#working) this.#removeUploads();
  }

  #setDeadline(afterMs: number): void {
    this.#cancelDeadline();
    this.#cancelDeadline = this.#dependencies.runtime.clock.after(afterMs, () => {
      this.#end(new AppError("deadline", `Not done within ${String(afterMs)} ms.`));
    });
  }

  #end(reason: AppError): void {
    this.#over ??= reason;
    this.#abort.abort(reason);
    this.#stop(reason);
  }

  #untilOver<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#stop = reject;
      if (this.#over !== undefined) reject(this.#over);
      work.then(resolve, reject);
    });
  }

  async #work(): Promise<Answer<unknown>> {
    await this.#readBody();
    if (this.#over === undefined) this.#setDeadline(HTTP_CALL_DEADLINE_MS);
    const body = this.#body ?? NO_BODY;
    const path = pathFields(this.#request.params as Readonly<Record<string, string>>);
    const input = readInput(this.#endpoint, { path, query: this.#query, body: body.fields, bodyIsJson: body.isJson });
    const call: Call<unknown> = {
      principal: this.#principal(),
      input,
      files: body.files,
      text: body.text,
      client: this.#client(),
      signal: this.#abort.signal,
    };
    return this.#endpoint.handler(call as Call<never>);
  }

  #client(): Call<unknown>["client"] {
    const { headers, ip } = this.#request;
    return { remote: ip, session: this.#identity?.session, browser: /text\/html/i.test(headers.accept ?? "") };
  }

  /** For the session it may carry: what else may be wrong with the body is no stranger's business. */
  async #readForm(): Promise<void> {
    try {
      await this.#readBody();
    } catch (error) {
      if (isAppError(error, "invalid", "syntax")) throw notSignedIn();
      throw error;
    }
  }

  async #readBody(): Promise<void> {
    if (this.#body !== undefined) return;
    const { exchange, body } = this.#request;
    const anonymous = this.#identity === undefined;
    const maxBytes = anonymous ? HTTP_ANONYMOUS_BODY_MAX_BYTES : this.#endpoint.bodyMaxBytes;
    if (this.#request.isMultipart()) {
      const beforeFiles = async (fields: Fields): Promise<void> => {
        await this.#signInByForm(fields);
        if (this.#identity === undefined) throw notSignedIn();
      };
      this.#folder = join(
        this.#dependencies.uploads,
        Buffer.from(this.#dependencies.runtime.random.bytes(12)).toString("hex"),
      );
      this.#body = await readMultipart(this.#request, {
        folder: this.#folder,
        beforeFiles,
        ...(maxBytes !== undefined && { fieldsMaxBytes: maxBytes }),
      });
    } else if (body !== undefined && body !== null) {
      const text = await readText(this.#request.raw, exchange.contentType, maxBytes);
      this.#body = interpret(this.#endpoint, text, exchange.contentType);
    } else this.#body = NO_BODY;
    await this.#signInByForm(this.#body.fields);
  }

  async #signInByForm(fields: Fields): Promise<void> {
    this.#identity ??= await identifyByForm(this.#dependencies.signIn, fields, this.#request.exchange.traceparent);
  }

  #principal(): Principal {
    return this.#identity?.principal ?? nobody(this.#request.exchange.traceparent);
  }

  #isPublic(): boolean {
    return this.#endpoint.permission === "public";
  }

  #isChange(): boolean {
    return !this.#isPublic() && !this.#endpoint.permission.endsWith(":read");
  }

  async #recordChange(code: string): Promise<void> {
    if (!this.#isChange()) return;
    await this.#record(code === "ok" ? "ok" : code === "denied" ? "denied" : "failed", code);
  }

  /** What was done cannot be undone because its record failed; the audit area refuses the next change. */
  async #record(outcome: "ok" | "denied" | "failed", code: string): Promise<void> {
    const { tenant, user, traceparent } = this.#principal();
    const action = `${this.#request.method} ${pathOf(this.#request.url)}`;
    const entry = {
      tenant,
      user,
      permission: this.#endpoint.permission,
      action,
      outcome,
      code,
      remote: this.#request.ip,
      traceparent,
    };
    try {
      await this.#dependencies.audit.write(entry);
    } catch (error) {
      this.#dependencies.runtime.log.error({ err: error, entry }, "an audit record could not be written");
    }
  }

  #removeUploads(): void {
    if (this.#folder === undefined) return;
    rm(this.#folder, { recursive: true, force: true }).catch((error: unknown) => {
      this.#dependencies.runtime.log.warn({ err: error }, "an upload could not be removed");
    });
  }
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

/** A link on a page of another site carries the browser's cookie along; many calls that change something are plain GETs. */
function checkSite(request: FastifyRequest): void {
  if (request.headers["sec-fetch-site"] !== "cross-site") return;
  throw new AppError("denied", "A page of another site may not make changes here.");
}
