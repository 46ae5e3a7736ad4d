import { X509Certificate } from "node:crypto";
import { pino } from "pino";
import type { AgentSession } from "../../controller/areas/hosts/index.ts";
import { assemble, type Assembly } from "../../controller/assembly.ts";
import { PeerStream } from "../../controller/grpc/peer-stream.ts";
import { SessionStream, type SessionWire } from "../../controller/grpc/session-stream.ts";
import type { Runtime } from "../../controller/runtime.ts";
import { secretBox } from "../../controller/secrets/index.ts";
import type { AgentFrame } from "../../proto/gen/agent/v1/agent.ts";
import type { MemoryDatabase } from "../helpers/engines/memory/engine.ts";
import type { Caller, Network } from "./network.ts";
import { PeerServer, simulatedDial } from "./peers.ts";
import { Process } from "./process.ts";
import { NO_STORE_FAULTS, storeCall, type StoreFaults } from "./store.ts";
import type { World } from "./world.ts";

const SECRETS = secretBox([Buffer.alloc(32, 7)]);
const AGENT_PORT = 7070;

export interface ControllerOptions {
  readonly name: string;
  readonly world: World;
  readonly database: MemoryDatabase;
  readonly network: Network;
}

/** A controller that is started, paused, killed and restarted: the real services over a store shared by all. */
export class Controller {
  readonly name: string;
  readonly faults: StoreFaults = { ...NO_STORE_FAULTS };
  readonly skew = { ms: 0 };
  /** Called before every call of the store. */
  onCall: (name: string) => void = () => undefined;
  readonly #options: ControllerOptions;
  #process: Process | undefined;
  #services: Assembly | undefined;
  #runtime: Runtime | undefined;
  #lives = 0;

  constructor(options: ControllerOptions) {
    this.#options = options;
    this.name = options.name;
  }

  get process(): Process | undefined {
    return this.#process;
  }

  /** The services, while it runs and is not paused. */
  get services(): Assembly | undefined {
    return this.#process?.alive && !this.#process.paused ? this.#services : undefined;
  }

  /** Resolves when it listens. */
  async start(): Promise<Assembly> {
    const { name, world, database, network } = this.#options;
    const process = new Process({ name, world, skew: this.skew });
    this.#process = process;
    this.#lives += 1;
    world.note(`${name} starts`);
    // No call may wait for simulated time here, because it stands still while other threads do cryptography.
    let faults = NO_STORE_FAULTS;
    const runtime = this.#runtimeOf(process);
    this.#runtime = runtime;
    const call = storeCall({ world, process, faults: () => faults, onCall: (name) => this.onCall(name) });
    const services = await world.outside(
      this.#assemble(process, runtime, database.engine({ clock: process.clock, call })),
    );
    this.#services = services;
    services.start();
    network.listen(`${name}:${AGENT_PORT}`, {
      process,
      accept: (caller, call) => this.#accept(caller, call),
      acceptPeer: (side) =>
        void new PeerStream(new PeerServer(side), { services: services.peerServices, runtime, over: () => undefined }),
    });
    await world.outside(services.join(`http://${name}:8080`));
    faults = this.faults;
    return services;
  }

  /** Stops it in good order. */
  async stop(): Promise<void> {
    await this.#services?.close();
    this.#process?.kill();
  }

  kill(): void {
    this.#options.world.note(`${this.name} is killed`);
    this.#process?.kill();
  }

  pause(): void {
    this.#options.world.note(`${this.name} is held up`);
    this.#process?.pause();
  }

  resume(): void {
    this.#options.world.note(`${this.name} goes on`);
    this.#process?.resume();
  }

  #assemble(process: Process, runtime: Runtime, engine: Parameters<typeof assemble>[0]["engine"]): Promise<Assembly> {
    return assemble({
      engine,
      runtime,
      secrets: SECRETS,
      controllerId: `${this.name}-${this.#lives}`,
      publicNames: [this.name],
      dataDir: "/nowhere",
      version: "sim",
      agentPort: () => AGENT_PORT,
      dialPeer: simulatedDial((address) => this.#options.network.openPeer(this.name, process, address)),
    });
  }

  /** Another thread creates a certificate; simulated time must wait for it. */
  async #open(
    { hosts }: Assembly,
    hello: Parameters<Assembly["hosts"]["agents"]["openSession"]>,
  ): Promise<AgentSession> {
    const session = await hosts.agents.openSession(...hello);
    const receive = (frame: AgentFrame): Promise<void> => {
      const work = session.receive(frame);
      return frame.frame?.$case === "renew" ? this.#options.world.outside(work) : work;
    };
    return { epoch: session.epoch, receive, ended: () => session.ended() };
  }

  #runtimeOf(process: Process): Runtime {
    const { world } = this.#options;
    const destination = { write: (line: string) => world.remark(`${this.name} log ${line.trim()}`) };
    const log = pino({ level: world.tracing ? "info" : "silent", base: null, timestamp: false }, destination);
    return { clock: process.clock, random: process.random, log };
  }

  #accept({ identity: caller }: Caller, call: SessionWire): void {
    const [runtime, services] = [this.#runtime, this.#services];
    if (!runtime || !services) return;
    const identity = { tenant: caller.tenant, host: caller.host, serial: serialOf(caller.certificate) };
    new SessionStream(
      { runtime, open: (...hello) => this.#open(services, hello), over: () => undefined },
      call,
      identity,
    );
  }
}

const serials = new Map<string, string>();

/** The serial number of a certificate in DER, base64. Cached, because parsing one takes longer than most work here. */
function serialOf(certificate: string): string {
  const known =
    serials.get(certificate) ?? new X509Certificate(Buffer.from(certificate, "base64")).serialNumber.toUpperCase();
  serials.set(certificate, known);
  return known;
}
