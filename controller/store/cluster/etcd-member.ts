import { Etcd3, type IOptions } from "etcd3";
import { ETCD_MESSAGE_MAX_BYTES } from "../../../common/limits.ts";

type Policy = NonNullable<NonNullable<IOptions["faultHandling"]>["global"]>;

/**
 * One endpoint. `etcd3` itself picks a member by chance for every call, so that one which hangs takes its share of all
 * of them.
 */
export class EtcdMember {
  readonly endpoint: string;
  readonly client: Etcd3;
  readonly #waiting = new Set<() => void>();

  constructor(endpoint: string) {
    this.endpoint = endpoint;
    this.client = new Etcd3({
      hosts: [endpoint],
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

  /** Calls back when the member is given up, unless the answer is called before. */
  onGivenUp(callback: () => void): () => void {
    this.#waiting.add(callback);
    return () => this.#waiting.delete(callback);
  }

  giveUp(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const callback of waiting) callback();
  }
}

const asIs: Policy = {
  _altReturn: undefined as never,
  onSuccess: () => ({ dispose: () => undefined }),
  onFailure: () => ({ dispose: () => undefined }),
  execute: async (fn) => fn({ signal: new AbortController().signal }),
};
