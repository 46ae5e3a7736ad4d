import type { Process } from "./process.ts";
import type { World } from "./world.ts";

/** Number of frames that a gRPC stream accepts before it signals backpressure. */
const HIGH_WATER_FRAMES = 16;
/** A silent connection is closed after this time, as keep-alive does. */
const SILENCE_MIN_MS = 20_000;
const SILENCE_MAX_MS = 45_000;

/** One end of a connection. Frames arrive in the order in which they were sent. */
export interface Side {
  onFrame: (bytes: Uint8Array) => void;
  onEnd: () => void;
  onBroken: (why: string) => void;
  onDrain: () => void;
  /** Number of frames sent and not yet consumed by the other side. */
  readonly waiting: number;
  send(bytes: Uint8Array): boolean;
  end(): void;
  /** Ends the connection with an error for the other side. */
  fail(): void;
  /** Call when a received frame has been consumed. */
  consumed(): void;
}

export interface ConnectionOptions {
  readonly world: World;
  readonly latency: () => number;
  readonly client: Process;
}

/** Two ends, each in a program that may be paused or killed, and the frames in transit between them. */
export class Connection {
  readonly client: Side;
  readonly server: Side;
  readonly #options: ConnectionOptions;
  readonly #ends: { client: Process; server: Process | undefined };
  readonly #listeners: (() => void)[] = [];
  readonly #opening: End;
  #silent = false;
  #broken = false;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.#ends = { client: options.client, server: undefined };
    const { world, latency } = options;
    const carries = (): boolean => !this.#silent && !this.#broken;
    const fail = (): void => this.break("The stream failed.");
    const [client, server] = pairOf({ world, latency, carries, fail, processes: this.#ends });
    [this.client, this.server, this.#opening] = [client, server, client];
    options.client.onEnd(() => this.break("The other side died."));
  }

  /** The first packet reaches the other side. */
  dial(arrived: () => void): void {
    const latencyMs = this.#options.latency();
    this.#opening.notBefore(this.#options.world.nowMs + latencyMs);
    this.#options.world.after(latencyMs, "dial", () => {
      if (!this.#silent && !this.#broken) arrived();
    });
  }

  serve(process: Process): void {
    this.#ends.server = process;
    process.onEnd(() => this.break("The other side died."));
  }

  onOver(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Drops all frames from now on. Neither end notices until keep-alive does. */
  fallSilent(): void {
    if (this.#silent || this.#broken) return;
    this.#silent = true;
    const { world } = this.#options;
    for (const side of ["client", "server"] as const) {
      world.after(world.between(SILENCE_MIN_MS, SILENCE_MAX_MS), "keep-alive", () =>
        this.#tell(side, "The other side is silent."),
      );
    }
  }

  /** Drops the frames in transit. Both sides are informed, unless the connection is silent. */
  break(why: string): void {
    if (this.#broken) return;
    this.#broken = true;
    for (const listener of this.#listeners) listener();
    if (this.#silent) return;
    const { world, latency } = this.#options;
    for (const side of ["client", "server"] as const) world.after(latency(), "reset", () => this.#tell(side, why));
  }

  #tell(side: "client" | "server", why: string): void {
    const end = side === "client" ? this.client : this.server;
    this.#ends[side]?.turn(() => end.onBroken(why));
    if (this.#silent) this.break(why);
  }
}

interface PairOptions {
  readonly world: World;
  readonly latency: () => number;
  readonly carries: () => boolean;
  readonly fail: () => void;
  readonly processes: { readonly client: Process; readonly server: Process | undefined };
}

function pairOf(options: PairOptions): [client: End, server: End] {
  const client = new End(options, () => options.processes.server);
  const server = new End(options, () => options.processes.client);
  client.other = server;
  server.other = client;
  return [client, server];
}

class End implements Side {
  onFrame: (bytes: Uint8Array) => void = () => undefined;
  onEnd: () => void = () => undefined;
  onBroken: (why: string) => void = () => undefined;
  onDrain: () => void = () => undefined;
  other: End | undefined;
  waiting = 0;
  readonly #options: PairOptions;
  readonly #receiver: () => Process | undefined;
  #lastMs = 0;
  #ended = false;

  constructor(options: PairOptions, receiver: () => Process | undefined) {
    this.#options = options;
    this.#receiver = receiver;
  }

  send(bytes: Uint8Array): boolean {
    if (this.#ended || !this.#options.carries()) return true;
    this.waiting += 1;
    const sent = Uint8Array.from(bytes);
    this.#carry(() => this.other?.onFrame(sent));
    return this.waiting < HIGH_WATER_FRAMES;
  }

  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#carry(() => this.other?.onEnd());
  }

  fail(): void {
    this.#options.fail();
  }

  consumed(): void {
    const { other } = this;
    if (!other) return;
    other.waiting -= 1;
    if (other.waiting < HIGH_WATER_FRAMES) other.onDrain();
  }

  /** No frame may arrive before the packet that opens the connection. */
  notBefore(timeMs: number): void {
    this.#lastMs = Math.max(this.#lastMs, timeMs);
  }

  #carry(arrive: () => void): void {
    const { world, latency, carries } = this.#options;
    this.#lastMs = Math.max(this.#lastMs, world.nowMs + latency());
    world.after(this.#lastMs - world.nowMs, "frame", () => {
      if (carries()) this.#receiver()?.turn(arrive);
    });
  }
}
