import { InterceptingCall, status as grpcStatus, type Interceptor } from "@grpc/grpc-js";
import { Etcd3, type IOptions } from "etcd3";
import { CLUSTER_ATTEMPT_DEADLINE_MS, ETCD_MESSAGE_MAX_BYTES } from "../../../../common/limits.ts";
import type { Clock } from "../../../../common/time.ts";
import type { StoreAccess } from "../../access.ts";

type Policy = NonNullable<NonNullable<IOptions["faultHandling"]>["global"]>;

/**
 * One endpoint. With several endpoints, `etcd3` would pick a member at random for every call, so a hanging member would
 * affect its share of all calls.
 */
export class EtcdMember {
  readonly endpoint: string;
  readonly client: Etcd3;
  readonly #waiting = new Set<() => void>();

  constructor(endpoint: string, { tls, account }: StoreAccess, clock: Clock) {
    this.endpoint = endpoint;
    this.client = new Etcd3({
      hosts: [endpoint],
      ...(tls && { credentials: credentialsOf(tls) }),
      ...(account && {
        auth: {
          username: account.user,
          password: account.password,
          callOptions: () => ({ interceptors: [endedInTime(clock)] }),
        },
      }),
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

  /** Calls back when the member is given up, unless the returned function is called first. */
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

function credentialsOf({ ca, client }: NonNullable<StoreAccess["tls"]>): NonNullable<IOptions["credentials"]> {
  return { rootCertificate: ca, ...(client && { certChain: client.cert, privateKey: client.key }) };
}

/**
 * Cancels a sign-in at a hanging member. The client signs in before a call, so the limit of the call does not apply.
 */
function endedInTime(clock: Clock): Interceptor {
  return (options, next) => {
    const call = new InterceptingCall(next(options));
    clock.after(CLUSTER_ATTEMPT_DEADLINE_MS, () =>
      call.cancelWithStatus(grpcStatus.CANCELLED, "etcd did not answer in time"),
    );
    return call;
  };
}

const asIs: Policy = {
  _altReturn: undefined as never,
  onSuccess: () => ({ dispose: () => undefined }),
  onFailure: () => ({ dispose: () => undefined }),
  execute: async (fn) => fn({ signal: new AbortController().signal }),
};
