import { AppError } from "../../common/errors.ts";
import type { Identity } from "../../agent/identity/identity.ts";
import type { Transport, TunnelCall, Wire } from "../../agent/session/transport.ts";
import type { SessionWire } from "../../controller/grpc/session-stream.ts";
import { AgentFrame, ControllerFrame } from "../../proto/gen/agent/v1/agent.ts";
import { Connection, type Side } from "./connection.ts";
import type { Process } from "./process.ts";
import type { World } from "./world.ts";

/** The host that opened a stream. */
export interface Caller {
  readonly host: string;
  readonly identity: Identity;
}

export interface Port {
  readonly process: Process;
  accept(caller: Caller, call: SessionWire): void;
  /** Another controller connects. */
  acceptPeer(side: Side): void;
}

/** Receives frames when they are delivered. */
export interface Observer {
  toAgent(host: string, frame: ControllerFrame): void;
}

/** Transit time of a frame. */
interface Latency {
  readonly fromMs: number;
  readonly toMs: number;
}

/** All streams between hosts and controllers. */
export class Network {
  readonly #world: World;
  readonly #ports = new Map<string, Port>();
  readonly #connections = new Set<{
    readonly host: string;
    readonly address: string;
    readonly connection: Connection;
  }>();
  readonly #cut = new Set<string>();
  readonly #observer: Observer;
  #latency: Latency = { fromMs: 0.2, toMs: 5 };
  #slowestMs = 0;

  constructor(world: World, observer: Observer) {
    this.#world = world;
    this.#observer = observer;
  }

  set latency(latency: Latency) {
    this.#latency = latency;
    this.#slowestMs = Math.max(this.#slowestMs, latency.toMs);
  }

  /** Longest transit time of a frame in this history; 0 while nothing was slow. */
  get slowestMs(): number {
    return this.#slowestMs;
  }

  listen(address: string, port: Port): void {
    this.#ports.set(address, port);
    port.process.onEnd(() => {
      if (this.#ports.get(address) === port) this.#ports.delete(address);
    });
  }

  /** The transport for one life of an agent. */
  transportOf(host: string, process: Process): Transport {
    return { open: (address, identity) => this.#open({ host, process, address, identity }) };
  }

  /** Opens a connection from one controller to another. */
  openPeer(from: string, process: Process, address: string): Connection {
    return this.#connect({ from, process, address }, (port, side) => port.acceptPeer(side));
  }

  /** Allows no new streams, and drops everything sent over existing ones. Neither side is informed. */
  partition(host: string, address: string): void {
    this.#world.note(`${host} and ${address} are parted`);
    this.#cut.add(`${host} ${address}`);
    for (const one of this.#connections) if (one.host === host && one.address === address) one.connection.fallSilent();
  }

  heal(): void {
    this.#world.note("the network is whole");
    this.#cut.clear();
  }

  /** Breaks the connections between them, with or without informing them. */
  cut(host: string, address: string, silently: boolean): void {
    this.#world.note(`${host} and ${address} are cut${silently ? " in silence" : ""}`);
    for (const one of [...this.#connections]) {
      if (one.host !== host || one.address !== address) continue;
      if (silently) one.connection.fallSilent();
      else one.connection.break("The connection was cut.");
    }
  }

  /** Connections of that host become silent, as in a power failure. */
  silence(host: string): void {
    for (const one of this.#connections) if (one.host === host) one.connection.fallSilent();
  }

  get open(): number {
    return this.#connections.size;
  }

  #open({
    host,
    process,
    address,
    identity,
  }: {
    host: string;
    process: Process;
    address: string;
    identity: Identity;
  }): Wire {
    const connection = this.#connect({ from: host, process, address }, (port, side) =>
      port.accept({ host, identity }, new ServerCall(side)),
    );
    return new ClientWire({ connection, address, deliver: (frame) => this.#observer.toAgent(host, frame) });
  }

  #connect(
    { from, process, address }: { from: string; process: Process; address: string },
    accept: (port: Port, side: Side) => void,
  ): Connection {
    const world = this.#world;
    const connection = new Connection({
      world,
      latency: () => world.between(this.#latency.fromMs, this.#latency.toMs),
      client: process,
    });
    const entry = { host: from, address, connection };
    this.#connections.add(entry);
    connection.onOver(() => void this.#connections.delete(entry));
    const cut = this.#cut.has(`${from} ${address}`);
    if (cut) connection.fallSilent();
    world.remark(`${from} dials ${address}${cut ? ", which is cut off" : ""}`);
    connection.dial(() => {
      const port = this.#ports.get(address);
      if (!port) return connection.break(`Nobody listens at ${address}.`);
      connection.serve(port.process);
      port.process.turn(() => accept(port, connection.server));
    });
    return connection;
  }
}

class ClientWire implements Wire {
  readonly over: Promise<AppError>;
  readonly #connection: Connection;
  readonly #side: Side;
  readonly #address: string;
  readonly #frames: ControllerFrame[] = [];
  readonly #deliver: (frame: ControllerFrame) => void;
  #ended = false;
  #error: AppError | undefined;
  #wake: () => void = () => undefined;
  #resolveOver: (reason: AppError) => void = () => undefined;

  constructor({
    connection,
    address,
    deliver,
  }: { connection: Connection; address: string; deliver: (frame: ControllerFrame) => void }) {
    this.#connection = connection;
    this.#side = connection.client;
    this.#address = address;
    this.#deliver = deliver;
    this.over = new Promise((resolve) => (this.#resolveOver = resolve));
    this.#side.onFrame = (bytes) => this.#came(() => this.#frames.push(ControllerFrame.decode(bytes)));
    this.#side.onEnd = () => this.#came(() => (this.#ended = true));
    this.#side.onBroken = (why) => this.#broke(why);
  }

  get frames(): AsyncIterable<ControllerFrame> {
    return this.#read();
  }

  send(frame: AgentFrame): boolean {
    return this.#side.send(AgentFrame.encode(frame).finish());
  }

  drained(): Promise<void> {
    return new Promise((resolve) => (this.#side.onDrain = resolve));
  }

  end(): void {
    this.#side.end();
  }

  /** Both ends are informed, including this one. */
  cancel(): void {
    this.#connection.break("The stream was cancelled.");
  }

  fetch(): AsyncIterable<Uint8Array> {
    const none = new AppError("unavailable", "There is no content here.");
    return { [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(none) }) };
  }

  tunnel(): TunnelCall {
    throw new AppError("unavailable", "There are no tunnels here.");
  }

  async *#read(): AsyncGenerator<ControllerFrame> {
    for (;;) {
      if (this.#error) throw this.#error;
      const frame = this.#frames.shift();
      if (frame) {
        this.#side.consumed();
        this.#deliver(frame);
        yield frame;
      } else if (this.#ended) {
        this.#resolveOver(new AppError("unavailable", `${this.#address} ended the session.`));
        return;
      } else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }

  #came(note: () => void): void {
    note();
    this.#wake();
  }

  #broke(why: string): void {
    if (this.#error || this.#ended) return;
    this.#error = new AppError("unavailable", `${this.#address}: ${why}`);
    this.#resolveOver(this.#error);
    this.#wake();
  }
}

type CallEvent = "data" | "end" | "cancelled" | "close" | "error";

/** The controller's end, as gRPC would show it. */
class ServerCall implements SessionWire {
  readonly #side: Side;
  readonly #listeners = new Map<CallEvent, (frame: AgentFrame) => void>();
  readonly #frames: AgentFrame[] = [];
  #paused = false;
  #ended = false;
  #told = false;

  constructor(side: Side) {
    this.#side = side;
    side.onFrame = (bytes) => {
      this.#frames.push(AgentFrame.decode(bytes));
      this.#flow();
    };
    side.onEnd = () => {
      this.#ended = true;
      this.#flow();
    };
    side.onBroken = () => this.#tell("cancelled");
  }

  get writableLength(): number {
    return this.#side.waiting;
  }

  on(event: CallEvent, listener: (frame: AgentFrame) => void): unknown {
    this.#listeners.set(event, listener);
    return this;
  }

  write(frame: ControllerFrame): unknown {
    return this.#side.send(ControllerFrame.encode(frame).finish());
  }

  end(): unknown {
    return this.#side.end();
  }

  emit(_event: "error", _reason: unknown): unknown {
    return this.#side.fail();
  }

  pause(): unknown {
    this.#paused = true;
    return this;
  }

  resume(): unknown {
    this.#paused = false;
    this.#flow();
    return this;
  }

  #flow(): void {
    while (!this.#paused && this.#frames.length > 0) {
      const frame = this.#frames.shift();
      this.#side.consumed();
      if (frame) this.#listeners.get("data")?.(frame);
    }
    if (!this.#paused && this.#ended && this.#frames.length === 0) this.#tell("end");
  }

  #tell(event: CallEvent): void {
    if (this.#told) return;
    this.#told = true;
    this.#listeners.get(event)?.({ frame: undefined });
  }
}
