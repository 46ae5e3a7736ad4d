import { Duplex } from "node:stream";
import { InterceptingCall, status as grpcStatus, type CallOptions } from "@grpc/grpc-js";
import {
  ClientClosedError,
  EtcdLeaseInvalidError,
  type KVClient,
  type LeaseClient,
  type MaintenanceClient,
  type WatchClient,
} from "etcd3";
import { AppError, errorText } from "../../../../common/errors.ts";
import {
  CLUSTER_ATTEMPT_DEADLINE_MS,
  ETCD_PROBE_DEADLINE_MS,
  ETCD_PROBE_INTERVAL_MS,
} from "../../../../common/limits.ts";
import { wait } from "../../../../common/time.ts";
import type { Runtime } from "../../../runtime.ts";
import type { StoreAccess } from "../../access.ts";
import { Deadline, type UnansweredTime } from "../deadline.ts";
import { EtcdMember } from "./member.ts";

/** Options to pass to a call of etcd's client, so that the call can be cancelled. */
export type EtcdCall = Pick<CallOptions, "interceptors">;

export interface EtcdStream {
  readonly stream: Duplex;
  /** Ends the stream. If it is not called, etcd keeps its side of the stream open. */
  end(): void;
  /** Ends the stream and changes to another member, because this one was silent for too long. */
  giveUp(): void;
}

/**
 * etcd through `etcd3`, without that library's own retries. The library repeats conditional writes whose outcome is
 * unknown. If the first attempt succeeded, the repetition fails, and the caller sees a lost race although it won.
 *
 * One member at a time serves all requests of this controller. The next member is taken when a call gets no answer,
 * when the member misses a probe, or when it knows no leader in two probes. Reads and streams that still use the old
 * member then end and restart at the next one. A write waits for the old member, because it may have arrived there.
 */
export class Etcd {
  readonly #members: readonly EtcdMember[];
  readonly #runtime: Runtime;
  readonly #closed = new AbortController();
  #inUse: number;
  #revision = 0;

  constructor(endpoints: readonly string[], runtime: Runtime, access: StoreAccess = {}) {
    this.#runtime = runtime;
    this.#members = endpoints.map((endpoint) => new EtcdMember(endpoint, access, runtime.clock));
    // A random start distributes controllers over the members.
    this.#inUse = Math.floor(runtime.random.next() * endpoints.length);
    if (endpoints.length > 1) void this.#watchOver();
  }

  get runtime(): Runtime {
    return this.#runtime;
  }

  get kv(): KVClient {
    return this.#member.client.kv;
  }

  get leases(): LeaseClient {
    return this.#member.client.leaseClient;
  }

  get watches(): WatchClient {
    return this.#member.client.watchClient;
  }

  get maintenance(): MaintenanceClient {
    return this.#member.client.maintenance;
  }

  /** The highest revision seen in any answer. */
  get revision(): number {
    return this.#revision;
  }

  saw(revision: number): void {
    this.#revision = Math.max(this.#revision, revision);
  }

  /** Retries within the call's deadline: a read always, a write only while it has certainly not reached a server. */
  async call<T extends object>(kind: "read" | "write", invoke: (call: EtcdCall) => Promise<T>): Promise<T> {
    const { clock, random } = this.#runtime;
    const deadline = new Deadline(clock, random);
    const silence = deadline.silence("etcd");
    try {
      return await this.#repeat(kind, { deadline, silence }, invoke);
    } finally {
      silence.over();
    }
  }

  async #repeat<T extends object>(
    kind: "read" | "write",
    { deadline, silence }: { readonly deadline: Deadline; readonly silence: UnansweredTime },
    invoke: (call: EtcdCall) => Promise<T>,
  ): Promise<T> {
    // If a call were cancelled at its beginning, its error would look as if the call had been sent.
    if (deadline.passed()) throw new AppError("unavailable", "There was no time left to ask etcd.");
    for (;;) {
      const member = this.#member;
      silence.attempt();
      try {
        const answer = await this.#attempt(
          Math.min(deadline.leftMs(), CLUSTER_ATTEMPT_DEADLINE_MS),
          kind === "read" ? member : undefined,
          invoke,
        );
        const { header } = answer as { readonly header?: { readonly revision: string } | null };
        if (header) this.saw(Number(header.revision));
        return answer;
      } catch (error) {
        const fault = faultOf(error);
        if (fault === "answer") throw answerError(error);
        silence.unanswered();
        this.#leave(member);
        if (kind === "write" && fault === "maybe_sent")
          throw new AppError("unknown_outcome", `etcd did not tell how a write ended: ${errorText(error)}`);
        if (!(await deadline.pause())) throw new AppError("unavailable", `etcd does not answer: ${errorText(error)}`);
      }
    }
  }

  /** The stream fails when its member is given up, also while it is being opened. */
  async open(connect: () => Promise<unknown>): Promise<EtcdStream> {
    const member = this.#member;
    let isGivenUp = false;
    const forgetOpening = member.onGivenUp(() => (isGivenUp = true));
    const stream = await connect().finally(forgetOpening);
    if (!(stream instanceof Duplex)) throw new AppError("internal", "etcd's client gave something that is no stream.");
    // The stream's reader gets the error; without a listener a later error would end the process.
    stream.on("error", () => undefined);
    const end = (): void => {
      // Destroying it alone would leave it open at etcd.
      (stream as Duplex & { cancel(): void }).cancel();
      stream.destroy();
    };
    if (isGivenUp) {
      end();
      throw new AppError("unavailable", "etcd's member was given up while a stream to it was opened.");
    }
    const forget = member.onGivenUp(end);
    stream.once("close", forget);
    return { stream, end, giveUp: () => (end(), this.#leave(member)) };
  }

  close(): void {
    this.#closed.abort();
    for (const member of this.#members) member.client.close();
  }

  get #member(): EtcdMember {
    const member = this.#members[this.#inUse];
    if (member === undefined) throw new AppError("invalid", "No endpoint of etcd was given.");
    return member;
  }

  /** Uses the monotonic clock; gRPC's own deadlines use the time of day. */
  async #attempt<T>(
    limitMs: number,
    member: EtcdMember | undefined,
    invoke: (call: EtcdCall) => Promise<T>,
  ): Promise<T> {
    let started: InterceptingCall | undefined;
    const cancel = (): void => started?.cancelWithStatus(grpcStatus.CANCELLED, "etcd did not answer in time");
    const stopTimer = this.#runtime.clock.after(limitMs, cancel);
    const forget = member?.onGivenUp(cancel);
    try {
      return await invoke({ interceptors: [(options, next) => (started = new InterceptingCall(next(options)))] });
    } finally {
      stopTimer();
      forget?.();
    }
  }

  /** Leaves the member only once, even if many calls fail at once. */
  #leave(member: EtcdMember): void {
    if (this.#members.length === 1 || this.#closed.signal.aborted || member !== this.#member) return;
    this.#inUse = (this.#inUse + 1) % this.#members.length;
    this.#runtime.log.debug({ from: member.endpoint, to: this.#member.endpoint }, "another member of etcd is taken");
    member.giveUp();
  }

  async #watchOver(): Promise<void> {
    const { clock } = this.#runtime;
    let leaderless: EtcdMember | undefined;
    for (;;) {
      await wait(clock, ETCD_PROBE_INTERVAL_MS, this.#closed.signal);
      if (this.#closed.signal.aborted) return;
      const member = this.#member;
      const state = await this.#probe(member);
      // A leader is elected within this time; until then no other member knows one either.
      if (state === "silent" || (state === "leaderless" && leaderless === member)) this.#leave(member);
      leaderless = state === "leaderless" ? member : undefined;
    }
  }

  async #probe(member: EtcdMember): Promise<"serves" | "leaderless" | "silent"> {
    try {
      const status = await this.#attempt(ETCD_PROBE_DEADLINE_MS, undefined, (call) =>
        member.client.maintenance.status(call),
      );
      return status.leader === "0" ? "leaderless" : "serves";
    } catch {
      return "silent";
    }
  }
}

/**
 * `answer`: a server has judged the request. In the other cases no server has judged it: a `maybe_sent` request may
 * have arrived, a `not_sent` request certainly did not.
 */
function faultOf(error: unknown): "answer" | "maybe_sent" | "not_sent" {
  if (!(error instanceof Error) || error instanceof ClientClosedError || error instanceof EtcdLeaseInvalidError)
    return "answer";
  const text = error.message;
  if (
    /No connection established|ECONNREFUSED|Name resolution failed|Channel has been shut down|before call started|not capable|too many requests/.test(
      text,
    )
  )
    return "not_sent";
  // gRPC codes: cancelled, unknown, deadline exceeded, aborted, internal, unavailable.
  return /^(\w+: )?(1|2|4|10|13|14) [A-Z_]+:/.test(text) && !/etcdserver: mvcc|duplicate key|too large/.test(text)
    ? "maybe_sent"
    : "answer";
}

function answerError(error: unknown): Error {
  const text = errorText(error);
  if (error instanceof ClientClosedError) return new AppError("unavailable", "The store was closed.");
  if (error instanceof EtcdLeaseInvalidError)
    return new AppError("not_found", "There is no such lease; it may have ended.", { cause: error });
  if (/compacted/.test(text)) return new AppError("compacted", "This history is no longer kept: list again.");
  if (/duplicate key/.test(text)) return new AppError("invalid", "A transaction may write a key only once.");
  if (/too large|larger than max|too many operations/.test(text))
    return new AppError("too_large", `etcd refused the request: ${text}`);
  if (/space exceeded/.test(text))
    return new AppError("unavailable", "etcd takes no writes: its space is exceeded (NOSPACE). Reads go on.");
  if (/no leader|not started/.test(text)) return new AppError("unavailable", `etcd refused the request: ${text}`);
  return error instanceof Error ? error : new Error(text);
}
