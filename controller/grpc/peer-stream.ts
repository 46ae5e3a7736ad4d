import type { Duplex } from "node:stream";
import type { ServerDuplexStream } from "@grpc/grpc-js";
import { AppError, errorText, isAppError } from "../../common/errors.ts";
import {
  AGENT_COMMANDS_WAITING_MAX,
  PEER_BEAT_MS,
  PEER_QUEUE_MAX_BYTES,
  PEER_QUEUE_MAX_FRAMES,
  PEER_SILENCE_MAX_MS,
  PEER_SUBJECTS_MAX,
} from "../../common/limits.ts";
import type { PeerEvent, PeerRequest, Recent, Watch } from "../../proto/gen/peer/v1/peer.ts";
import type { CommandListener, PeerCall, PeerWatch, TunnelPlace } from "../areas/hosts/index.ts";
import type { Interest, PeerBroadcast } from "../areas/notifications/index.ts";
import type { RecentOfPolicy } from "../areas/rules/index.ts";
import type { Runtime } from "../runtime.ts";

export type PeerServerCall = ServerDuplexStream<PeerRequest, PeerEvent>;
type Event = NonNullable<PeerEvent["event"]>;

/** The part of a gRPC call that a stream uses; the simulation has its own implementation. */
export interface PeerServerWire {
  on(event: "data", listener: (request: PeerRequest) => void): unknown;
  on(event: string, listener: () => void): unknown;
  /** Calls back when the event has been sent. */
  write(event: PeerEvent, left: () => void): unknown;
  end(): unknown;
  emit(event: "error", reason: unknown): unknown;
}

const PROTOCOL = 1;

/** Services of this controller for the others. */
export interface PeerServices {
  /** Returns `undefined` if the session is not here. */
  readonly serve: (watch: PeerWatch, listener: CommandListener) => (PeerCall & { readonly epoch: number }) | undefined;
  /** Opens a tunnel over an agent whose session is here. Throws an `AppError` with the reason if it fails. */
  readonly tunnel: (place: TunnelPlace, signal: AbortSignal) => Promise<Duplex>;
  readonly refreshHere: (tenant: string, hosts: readonly string[]) => void;
  /** Raw records in the memory of this controller. */
  readonly recent: (tenant: string, policy: string) => RecentOfPolicy;
  /** Sends everything published here to the outlet. Call the result to stop. */
  readonly attach: (outlet: PeerBroadcast) => () => void;
}

/**
 * A controller that connected to this one and receives the events that it waits for. If it reads too slowly, events are
 * dropped, and it is informed of that.
 */
export class PeerStream {
  readonly #call: PeerServerWire;
  readonly #services: PeerServices;
  readonly #runtime: Runtime;
  readonly #over: () => void;
  readonly #calls = new Map<number, PeerCall>();
  #wanted: ReadonlySet<string> = new Set();
  #detach: () => void = () => undefined;
  #stopTimer: () => void = () => undefined;
  #heardMs: number;
  #greeted = false;
  #queuedFrames = 0;
  #queuedBytes = 0;
  #lost = false;
  #ended = false;

  constructor(
    call: PeerServerWire,
    dependencies: { readonly services: PeerServices; readonly runtime: Runtime; readonly over: () => void },
  ) {
    this.#call = call;
    this.#services = dependencies.services;
    this.#runtime = dependencies.runtime;
    this.#over = dependencies.over;
    this.#heardMs = this.#runtime.clock.monotonicMs();
    call.on("data", (request: PeerRequest) => this.#read(request));
    for (const end of ["end", "cancelled", "close", "error"]) call.on(end, () => this.close());
    this.#watchSilence();
  }

  close(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#stopTimer();
    this.#detach();
    for (const call of this.#calls.values()) call.end();
    this.#calls.clear();
    this.#call.end();
    this.#over();
  }

  #read({ request }: PeerRequest): void {
    if (this.#ended || !request) return;
    this.#heardMs = this.#runtime.clock.monotonicMs();
    try {
      this.#take(request);
    } catch (error) {
      this.#runtime.log.warn(
        { code: isAppError(error) ? error.code : "internal", reason: errorText(error) },
        "a request of another controller failed",
      );
      this.close();
    }
  }

  #take(request: NonNullable<PeerRequest["request"]>): void {
    if (this.#greeted === (request.$case === "hello"))
      throw new AppError("invalid", "The first request, and no other, is a hello.");
    switch (request.$case) {
      case "hello":
        return this.#greet(request.value.protocol);
      case "watch":
        return this.#watch(request.value);
      case "cancel":
        return this.#calls.get(request.value.call)?.cancel();
      case "end":
        this.#calls.get(request.value.call)?.end();
        this.#calls.delete(request.value.call);
        return;
      case "wanted":
        this.#wanted = new Set(request.value.subjects.slice(0, PEER_SUBJECTS_MAX).map(keyOf));
        return;
      case "refresh":
        return this.#services.refreshHere(request.value.tenant, request.value.hosts);
      case "recent":
        return this.#tellRecent(request.value);
      case "beat":
        return this.#send({ $case: "beat", value: {} });
    }
  }

  #greet(protocol: number): void {
    if (protocol !== PROTOCOL)
      throw new AppError("unsupported", `The other controller speaks protocol ${protocol}, this one ${PROTOCOL}.`);
    this.#greeted = true;
    this.#detach = this.#services.attach({
      wants: (tenant, subject) => this.#wanted.has(keyOf({ tenant, subject })),
      send: (tenant, notification) => {
        const { keyspace, source, subject, title, reply, msg } = notification;
        const about = notification.about === undefined ? "" : JSON.stringify(notification.about);
        this.#send(
          { $case: "notification", value: { tenant, keyspace, source, subject, title, reply, msg, about } },
          msg.length + about.length,
        );
      },
    });
    this.#send({ $case: "beat", value: {} });
  }

  #watch({ call, tenant, host, command }: Watch): void {
    const room = command !== undefined && this.#calls.size < AGENT_COMMANDS_WAITING_MAX;
    const served = room ? this.#services.serve({ tenant, host, command }, this.#listener(call)) : undefined;
    if (!served) return this.#send({ $case: "notHeld", value: { call } });
    this.#calls.set(call, served);
    this.#send({ $case: "watching", value: { call, epoch: served.epoch } });
  }

  #tellRecent({ call, tenant, policy }: Recent): void {
    const { classes, records, leftOut } = this.#services.recent(tenant, policy);
    const bytes = records.reduce((sum, { text }) => sum + text.length, 0);
    const value = { call, classes: [...classes], records: [...records], leftOut };
    this.#send({ $case: "recent", value }, bytes);
  }

  #listener(call: number): CommandListener {
    return {
      output: (output) => this.#send({ $case: "output", value: { call, output } }, output.data.length),
      result: (result) => this.#send({ $case: "result", value: { call, result } }),
      state: (state) => this.#send({ $case: "state", value: { call, state } }),
      lost: () => this.#send({ $case: "lost", value: {} }),
      sessionOver: () => {
        this.#calls.get(call)?.end();
        this.#calls.delete(call);
        this.#send({ $case: "notHeld", value: { call } });
      },
    };
  }

  #send(event: Event, bytes = 0): void {
    if (this.#ended) return;
    const full = this.#queuedFrames >= PEER_QUEUE_MAX_FRAMES || this.#queuedBytes >= PEER_QUEUE_MAX_BYTES;
    if (full && event.$case !== "watching" && event.$case !== "notHeld") {
      this.#lost = true;
      return;
    }
    this.#write(event, bytes);
  }

  #write(event: Event, bytes: number): void {
    this.#queuedFrames += 1;
    this.#queuedBytes += bytes;
    this.#call.write({ event }, () => {
      this.#queuedFrames -= 1;
      this.#queuedBytes -= bytes;
      if (!this.#lost || this.#ended || this.#queuedFrames > PEER_QUEUE_MAX_FRAMES / 2) return;
      this.#lost = false;
      this.#write({ $case: "lost", value: {} }, 0);
    });
  }

  #watchSilence(): void {
    const { clock } = this.#runtime;
    this.#stopTimer = clock.after(PEER_BEAT_MS, () => {
      if (clock.monotonicMs() - this.#heardMs > PEER_SILENCE_MAX_MS) {
        this.#call.emit("error", { code: 4, details: "Nothing was heard for too long." });
        return this.close();
      }
      this.#watchSilence();
    });
  }
}

function keyOf({ tenant, subject }: Interest): string {
  return `${tenant}/${subject}`;
}
