import type { Duplex } from "node:stream";
import { credentials } from "@grpc/grpc-js";
import { AppError, errorText } from "../../common/errors.ts";
import {
  PEER_BACKOFF_MAX_MS,
  PEER_BACKOFF_MIN_MS,
  PEER_BEAT_MS,
  PEER_HOSTS_PER_REFRESH_MAX,
  PEER_QUEUE_MAX_FRAMES,
  PEER_SILENCE_MAX_MS,
  PEER_SUBJECTS_MAX,
  RECENT_ASK_MS,
  SESSION_MESSAGE_MAX_BYTES,
} from "../../common/limits.ts";
import { wait } from "../../common/time.ts";
import { PeerLinkClient, type PeerEvent, type PeerRequest } from "../../proto/gen/peer/v1/peer.ts";
import type { Member } from "../areas/cluster/index.ts";
import type { PeerCall, PeerWatch, PeerWatcher, TunnelPlace } from "../areas/hosts/index.ts";
import type { Interest, Notification, NotifiedObject } from "../areas/notifications/index.ts";
import type { RecentOfPolicy } from "../areas/rules/index.ts";
import type { Runtime } from "../runtime.ts";
import { calledTunnel, type TunnelCall } from "./called-tunnel.ts";

type Request = NonNullable<PeerRequest["request"]>;

const PROTOCOL = 1;

/** The part of a gRPC stream that a link uses; the simulation has its own implementation. */
export interface PeerClientWire {
  readonly writableLength: number;
  readonly destroyed: boolean;
  on(event: "data", listener: (event: PeerEvent) => void): unknown;
  on(event: "error", listener: (error: Error) => void): unknown;
  on(event: "end", listener: () => void): unknown;
  write(request: PeerRequest): unknown;
  cancel(): void;
}

export interface DialledPeer {
  readonly stream: PeerClientWire;
  /** Opens a call for a tunnel over the same connection. Absent without gRPC. */
  readonly tunnel?: () => TunnelCall;
  readonly close: () => void;
}

/** Opens a stream to another controller. If that controller does not answer, the stream ends. */
export type DialPeer = (member: Member) => Promise<DialledPeer>;

export interface PeerLinkDependencies {
  readonly runtime: Runtime;
  /** Client certificate in PEM. `as`: the name in the certificate of every controller. */
  readonly certificate: () => Promise<{ readonly certificate: string; readonly key: string; readonly as: string }>;
  /** CA certificates of controllers, PEM. */
  readonly authorities: string;
  readonly interests: () => readonly Interest[];
  readonly receive: (tenant: string, notification: Notification) => void;
  /** Absent: gRPC. */
  readonly dial?: DialPeer;
}

/** The connection to one other controller. It is opened again whenever it breaks, until `close`. */
export class PeerLink {
  readonly #with: PeerLinkDependencies;
  readonly #member: Member;
  readonly #stop = new AbortController();
  readonly #watchers = new Map<number, PeerWatcher>();
  /** Called with the answer to a question; with `undefined` if none will come. */
  readonly #asking = new Map<number, (found: RecentOfPolicy | undefined) => void>();
  #answered = false;
  /** True once the outage was logged: later failed attempts are not logged again. */
  #isAway = false;
  /** Present once the other controller has answered. */
  #ready: PeerClientWire | undefined;
  #tunnel: DialledPeer["tunnel"];
  #calls = 0;

  constructor(dependencies: PeerLinkDependencies, member: Member) {
    this.#with = dependencies;
    this.#member = member;
    void this.#run();
  }

  close(): void {
    this.#stop.abort();
  }

  watch(watch: PeerWatch, watcher: PeerWatcher): PeerCall | undefined {
    const stream = this.#ready;
    if (!stream || stream.writableLength >= PEER_QUEUE_MAX_FRAMES) return undefined;
    const call = (this.#calls += 1);
    this.#watchers.set(call, watcher);
    this.#send(stream, { $case: "watch", value: { call, ...watch } });
    return {
      cancel: () => this.#watchers.has(call) && this.#send(stream, { $case: "cancel", value: { call } }),
      end: () => this.#watchers.delete(call) && this.#send(stream, { $case: "end", value: { call } }),
    };
  }

  /** The other controller's raw records of a policy; `undefined` if it does not answer in time. */
  recent(tenant: string, policy: string): Promise<RecentOfPolicy | undefined> {
    const stream = this.#ready;
    if (!stream || stream.writableLength >= PEER_QUEUE_MAX_FRAMES) return Promise.resolve(undefined);
    const call = (this.#calls += 1);
    return new Promise((resolve) => {
      const stopTimer = this.#with.runtime.clock.after(RECENT_ASK_MS, () => this.#asking.get(call)?.(undefined));
      this.#asking.set(call, (found) => {
        stopTimer();
        this.#asking.delete(call);
        resolve(found);
      });
      this.#send(stream, { $case: "recent", value: { call, tenant, policy } });
    });
  }

  async tunnel(place: TunnelPlace, signal: AbortSignal): Promise<Duplex> {
    if (!this.#ready || !this.#tunnel) throw notReached();
    return calledTunnel(this.#tunnel(), place, { clock: this.#with.runtime.clock, signal });
  }

  refresh(tenant: string, hosts: readonly string[]): void {
    for (let at = 0; at < hosts.length; at += PEER_HOSTS_PER_REFRESH_MAX) {
      this.#send(this.#ready, {
        $case: "refresh",
        value: { tenant, hosts: hosts.slice(at, at + PEER_HOSTS_PER_REFRESH_MAX) },
      });
    }
  }

  /** Sends the interests of the sockets of this controller. */
  tellInterests(): void {
    const subjects = this.#with
      .interests()
      .slice(0, PEER_SUBJECTS_MAX)
      .map(({ tenant, subject }) => ({ tenant, subject }));
    this.#send(this.#ready, { $case: "wanted", value: { subjects } });
  }

  async #run(): Promise<void> {
    const { runtime } = this.#with;
    const { signal } = this.#stop;
    let pauseMs = PEER_BACKOFF_MIN_MS;
    for (let turn = 0; !signal.aborted; turn++) {
      const { id, addresses } = this.#member;
      const address = addresses[turn % addresses.length] ?? "";
      const reason = await this.#hold(address).catch(errorText);
      if (signal.aborted) return;
      runtime.log[this.#isAway ? "debug" : "warn"](
        { controller: id, address, reason },
        "the link to another controller is over; it is dialled again",
      );
      this.#isAway = true;
      pauseMs = this.#answered ? PEER_BACKOFF_MIN_MS : Math.min(PEER_BACKOFF_MAX_MS, pauseMs * 2);
      this.#answered = false;
      await wait(runtime.clock, pauseMs * (0.5 + runtime.random.next() / 2), signal);
    }
  }

  /** Holds one connection until it ends; resolves with the reason. */
  async #hold(address: string): Promise<string> {
    const dial = this.#with.dial ?? grpcDial(this.#with);
    const { stream, tunnel, close } = await dial({ ...this.#member, addresses: [address] });
    this.#tunnel = tunnel;
    try {
      return await this.#follow(stream);
    } finally {
      this.#ready = undefined;
      stream.cancel();
      close();
      const gone = [...this.#watchers.values()];
      this.#watchers.clear();
      for (const watcher of gone) watcher.gone();
      for (const answer of [...this.#asking.values()]) answer(undefined);
    }
  }

  #follow(stream: PeerClientWire): Promise<string> {
    const { clock } = this.#with.runtime;
    return new Promise((resolve) => {
      let heardMs = clock.monotonicMs();
      let stopTimer = (): void => undefined;
      const over = (reason: string): void => {
        stopTimer();
        this.#stop.signal.removeEventListener("abort", closed);
        resolve(reason);
      };
      const closed = (): void => over("It was closed.");
      const beat = (): void => {
        stopTimer = clock.after(PEER_BEAT_MS, () => {
          if (clock.monotonicMs() - heardMs > PEER_SILENCE_MAX_MS) return over("Nothing was heard for too long.");
          this.#send(stream, { $case: "beat", value: {} });
          beat();
        });
      };
      stream.on("data", (event: PeerEvent) => {
        heardMs = clock.monotonicMs();
        this.#hear(stream, event);
      });
      stream.on("error", (error) => over(errorText(error)));
      stream.on("end", () => over("It was ended."));
      this.#stop.signal.addEventListener("abort", closed, { once: true });
      if (this.#stop.signal.aborted) closed();
      this.#send(stream, { $case: "hello", value: { protocol: PROTOCOL } });
      beat();
    });
  }

  #hear(stream: PeerClientWire, { event }: PeerEvent): void {
    switch (event?.$case) {
      case "beat":
        if (this.#ready === stream) return;
        this.#ready = stream;
        this.#answered = true;
        if (this.#isAway)
          this.#with.runtime.log.info({ controller: this.#member.id }, "another controller is reached again");
        this.#isAway = false;
        return this.tellInterests();
      case "notification": {
        const { tenant, about, ...notification } = event.value;
        return this.#with.receive(tenant, {
          ...notification,
          about: about === "" ? undefined : (JSON.parse(about) as NotifiedObject),
        });
      }
      case "lost":
        for (const watcher of [...this.#watchers.values()]) watcher.lost();
        return;
      case "watching":
        return this.#watchers.get(event.value.call)?.watching(event.value.epoch);
      case "notHeld":
        return this.#notHeld(event.value.call);
      case "output":
        return event.value.output && this.#watchers.get(event.value.call)?.output(event.value.output);
      case "result":
        return event.value.result && this.#watchers.get(event.value.call)?.result(event.value.result);
      case "state":
        return event.value.state && this.#watchers.get(event.value.call)?.state(event.value.state);
      case "recent":
        return this.#asking.get(event.value.call)?.(event.value);
      case undefined:
        return; // a kind of event newer than this controller
    }
  }

  #notHeld(call: number): void {
    const watcher = this.#watchers.get(call);
    this.#watchers.delete(call);
    watcher?.notHeld();
  }

  #send(stream: PeerClientWire | undefined, request: Request): void {
    if (stream && !stream.destroyed) stream.write({ request });
  }
}

/** Uses mutual TLS with a server name that only controllers have. */
function grpcDial({ certificate: issue, authorities }: PeerLinkDependencies): DialPeer {
  return async (member) => {
    const { certificate, key, as } = await issue();
    const secure = credentials.createSsl(Buffer.from(authorities), Buffer.from(key), Buffer.from(certificate));
    const client = new PeerLinkClient(member.addresses[0] ?? "", secure, {
      "grpc.ssl_target_name_override": as,
      "grpc.use_local_subchannel_pool": 1,
      "grpc.enable_retries": 0,
      "grpc.service_config_disable_resolution": 1,
      "grpc.max_receive_message_length": SESSION_MESSAGE_MAX_BYTES,
    });
    return { stream: client.link(), tunnel: () => client.tunnel(), close: () => client.close() };
  };
}

/** Links to all other controllers; follows changes of their set. */
export class PeerLinks {
  readonly #with: PeerLinkDependencies;
  readonly #others: () => readonly Member[];
  readonly #links = new Map<string, PeerLink>();
  #closed = false;

  constructor(dependencies: PeerLinkDependencies & { readonly others: () => readonly Member[] }) {
    this.#with = dependencies;
    this.#others = dependencies.others;
  }

  /** Call at the start and whenever the other controllers change. */
  follow(): void {
    if (this.#closed) return;
    const others = new Map(this.#others().map((member) => [member.id, member]));
    for (const [id, link] of this.#links) {
      if (others.has(id)) continue;
      link.close();
      this.#links.delete(id);
    }
    for (const [id, member] of others) if (!this.#links.has(id)) this.#links.set(id, new PeerLink(this.#with, member));
  }

  watch(controller: string, watch: PeerWatch, watcher: PeerWatcher): PeerCall | undefined {
    return this.#links.get(controller)?.watch(watch, watcher);
  }

  /** Raw records of a policy, from each other controller; `undefined` for one that does not answer in time. */
  recent(tenant: string, policy: string): Promise<readonly (RecentOfPolicy | undefined)[]> {
    return Promise.all([...this.#links.values()].map((link) => link.recent(tenant, policy)));
  }

  /** Throws an `AppError` with the reason if there is no tunnel. */
  async tunnel(controller: string, place: TunnelPlace, signal: AbortSignal): Promise<Duplex> {
    const link = this.#links.get(controller);
    if (!link) throw notReached();
    return link.tunnel(place, signal);
  }

  refresh(controller: string, tenant: string, hosts: readonly string[]): void {
    this.#links.get(controller)?.refresh(tenant, hosts);
  }

  tellInterests(): void {
    for (const link of this.#links.values()) link.tellInterests();
  }

  close(): void {
    this.#closed = true;
    for (const link of this.#links.values()) link.close();
    this.#links.clear();
  }
}

function notReached(): AppError {
  return new AppError("unavailable", "The controller that its agent is connected to is not reached.");
}
