import { ClientClosedError, Etcd3, EtcdLeaseInvalidError, type IOptions, type KVClient, type LeaseClient, type WatchClient } from "etcd3";
import { AppError, errorText } from "../../../common/errors.ts";
import { CLUSTER_ATTEMPT_DEADLINE_MS, ETCD_MESSAGE_MAX_BYTES } from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import { Deadline } from "./deadline.ts";

type Policy = NonNullable<NonNullable<IOptions["faultHandling"]>["global"]>;

/** What every call to etcd is given: when it must have ended. */
export interface EtcdCall {
  readonly deadline: number;
}

/**
 * etcd as `etcd3` speaks it, without that library's own repetition: it repeats writes whose outcome is unknown, after which a
 * won race looks lost.
 */
export class Etcd {
  readonly #client: Etcd3;
  readonly #runtime: Runtime;

  constructor(endpoints: readonly string[], runtime: Runtime) {
    this.#runtime = runtime;
    this.#client = new Etcd3({
      hosts: [...endpoints],
      faultHandling: { global: asIs, host: () => asIs },
      grpcOptions: {
        "grpc.initial_reconnect_backoff_ms": 100,
        "grpc.max_reconnect_backoff_ms": 1_000,
        "grpc.keepalive_time_ms": 10_000,
        "grpc.keepalive_timeout_ms": 3_000,
        "grpc.max_receive_message_length": ETCD_MESSAGE_MAX_BYTES,
      },
    });
  }

  get runtime(): Runtime {
    return this.#runtime;
  }

  get kv(): KVClient {
    return this.#client.kv;
  }

  get leases(): LeaseClient {
    return this.#client.leaseClient;
  }

  get watches(): WatchClient {
    return this.#client.watchClient;
  }

  /** Repeats within the call's deadline: a read always, a write only while it has certainly not reached a server. */
  async call<T>(kind: "read" | "write", invoke: (call: EtcdCall) => Promise<T>): Promise<T> {
    const { clock, random } = this.#runtime;
    const deadline = new Deadline(clock, random);
    for (;;) {
      try {
        const leftMs = Math.min(deadline.leftMs(), CLUSTER_ATTEMPT_DEADLINE_MS);
        return await invoke({ deadline: clock.nowMs() + leftMs });
      } catch (error) {
        const fault = faultOf(error);
        if (fault === "answer") throw answerError(error);
        if (kind === "write" && fault === "maybe_sent") throw new AppError("unknown_outcome", `etcd did not tell how a write ended: ${errorText(error)}`);
        if (!(await deadline.pause())) throw new AppError("unavailable", `etcd does not answer: ${errorText(error)}`);
      }
    }
  }

  close(): void {
    this.#client.close();
  }
}

const asIs: Policy = {
  _altReturn: undefined as never,
  onSuccess: () => ({ dispose: () => undefined }),
  onFailure: () => ({ dispose: () => undefined }),
  execute: async (fn) => fn({ signal: new AbortController().signal }),
};

/** `answer`: a server has judged the request. The others: nobody did, and it may have arrived or certainly did not. */
function faultOf(error: unknown): "answer" | "maybe_sent" | "not_sent" {
  if (!(error instanceof Error) || error instanceof ClientClosedError || error instanceof EtcdLeaseInvalidError) return "answer";
  const text = error.message;
  if (/No connection established|ECONNREFUSED|Name resolution failed|Channel has been shut down|not capable|too many requests/.test(text)) return "not_sent";
  // Codes of gRPC: cancelled, unknown, deadline exceeded, aborted, internal, unavailable.
  return /^(\w+: )?(1|2|4|10|13|14) [A-Z_]+:/.test(text) && !/etcdserver: mvcc|duplicate key|too large/.test(text) ? "maybe_sent" : "answer";
}

function answerError(error: unknown): Error {
  const text = errorText(error);
  if (error instanceof ClientClosedError) return new AppError("unavailable", "The store was closed.");
  if (error instanceof EtcdLeaseInvalidError) return new AppError("not_found", "There is no such lease; it may have ended.", { cause: error });
  if (/compacted/.test(text)) return new AppError("compacted", "This history is no longer kept: list again.");
  if (/duplicate key/.test(text)) return new AppError("invalid", "A transaction may write a key only once.");
  if (/too large|larger than max|too many operations/.test(text)) return new AppError("too_large", `etcd refused the request: ${text}`);
  if (/space exceeded|no leader|not started/.test(text)) return new AppError("unavailable", `etcd refused the request: ${text}`);
  return error instanceof Error ? error : new Error(text);
}
