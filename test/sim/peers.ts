import type { AppError } from "../../common/errors.ts";
import type { DialPeer } from "../../controller/grpc/index.ts";
import type { PeerClientWire } from "../../controller/grpc/peer-link.ts";
import type { PeerServerWire } from "../../controller/grpc/peer-stream.ts";
import { PeerEvent, PeerRequest } from "../../proto/gen/peer/v1/peer.ts";
import type { Connection, Side } from "./connection.ts";

type Listener = (...given: never[]) => void;

/** The common part of both ends of a stream between controllers: listeners and a single end. */
class Listeners {
  readonly #byEvent = new Map<string, Listener[]>();
  #over = false;

  get over(): boolean {
    return this.#over;
  }

  add(event: string, listener: Listener): void {
    this.#byEvent.set(event, [...(this.#byEvent.get(event) ?? []), listener]);
  }

  tell(event: string, given?: unknown): void {
    if (this.#over) return;
    this.#over = event !== "data";
    for (const listener of this.#byEvent.get(event) ?? []) listener(given as never);
  }
}

/** The connecting end. */
export class PeerClient implements PeerClientWire {
  readonly #connection: Connection;
  readonly #side: Side;
  readonly #listeners = new Listeners();

  constructor(connection: Connection) {
    this.#connection = connection;
    this.#side = connection.client;
    this.#side.onFrame = (bytes) => {
      this.#side.consumed();
      this.#listeners.tell("data", PeerEvent.decode(bytes));
    };
    this.#side.onEnd = () => this.#listeners.tell("end");
    this.#side.onBroken = (why) => this.#listeners.tell("error", new Error(why));
  }

  get writableLength(): number {
    return this.#side.waiting;
  }

  get destroyed(): boolean {
    return this.#listeners.over;
  }

  on(event: string, listener: Listener): unknown {
    this.#listeners.add(event, listener);
    return this;
  }

  write(request: PeerRequest): unknown {
    return this.#side.send(PeerRequest.encode(request).finish());
  }

  cancel(): void {
    this.#connection.break("The stream was cancelled.");
  }
}

/** The accepting end. */
export class PeerServer implements PeerServerWire {
  readonly #side: Side;
  readonly #listeners = new Listeners();

  constructor(side: Side) {
    this.#side = side;
    side.onFrame = (bytes) => {
      side.consumed();
      this.#listeners.tell("data", PeerRequest.decode(bytes));
    };
    side.onEnd = () => this.#listeners.tell("end");
    side.onBroken = () => this.#listeners.tell("cancelled");
  }

  on(event: string, listener: Listener): unknown {
    this.#listeners.add(event, listener);
    return this;
  }

  write(event: PeerEvent, left: () => void): unknown {
    this.#side.send(PeerEvent.encode(event).finish());
    left();
    return true;
  }

  end(): unknown {
    return this.#side.end();
  }

  emit(_event: "error", _reason: AppError): unknown {
    return this.#side.fail();
  }
}

/** Dials other controllers for one life of a controller. */
export function simulatedDial(open: (address: string) => Connection): DialPeer {
  return (member) => {
    const connection = open(member.addresses[0] ?? "");
    return Promise.resolve({ stream: new PeerClient(connection), close: () => undefined });
  };
}
