import { randomBytes } from "node:crypto";
import { Backoff } from "../../agent/session/backoff.ts";
import { grpcTransport } from "../../agent/session/grpc-transport.ts";
import type { Identity } from "../../agent/identity/identity.ts";
import { Session } from "../../agent/session/session.ts";
import { SESSION_STEADY_MS } from "../../common/limits.ts";
import { wait } from "../../common/time.ts";
import type { Cancel, Command, CommandResult, DesiredState, Entry, Welcome } from "../../proto/gen/agent/v1/agent.ts";
import { realClock } from "../helpers/time/clock.ts";
import { MemoryOutbox } from "./outbox.ts";

/** A command for a host, whose end the emulated agent has to report. */
export interface EmulatedCommand {
  readonly host: string;
  readonly command: Command;
  /** Fires when a controller cancels the command, and at its deadline. Results after that are not reported. */
  readonly ended: AbortSignal;
}

export interface EmulatedEnd {
  /** Pieces of standard output, in their order. */
  readonly output?: readonly (string | Uint8Array)[];
  /** Absent: 0. */
  readonly code?: number;
}

/** Returns the output and the end of a command. Nothing is run. */
export type Behaviour = (command: EmulatedCommand) => EmulatedEnd | Promise<EmulatedEnd>;

type Body = NonNullable<Entry["body"]>;

const random = { next: () => Math.random(), bytes: (count: number) => new Uint8Array(randomBytes(count)) };

/**
 * An agent without a machine. It speaks the real protocol over TLS with its own identity, keeps its entries until they
 * are acknowledged, reconnects when its session ends, and runs each command once.
 */
export class EmulatedAgent {
  /** The state that the controller last wanted here. It is not carried out. */
  desired: DesiredState | undefined;
  /** Ids of the commands that began here. A command that is sent again does not run again. */
  readonly begun = new Set<string>();
  readonly #behave: Behaviour;
  readonly #transport = grpcTransport(realClock);
  readonly #outbox = new MemoryOutbox(randomBytes(12).toString("hex"));
  readonly #running = new Map<string, AbortController>();
  readonly #stopping = new AbortController();
  readonly #waiting = new Set<() => void>();
  #identity: Identity;
  #session: Session | undefined;
  #connected = false;
  #epoch = 0;
  #over: Promise<void> = Promise.resolve();

  constructor(identity: Identity, behave: Behaviour) {
    this.#identity = identity;
    this.#behave = behave;
  }

  get host(): string {
    return this.#identity.host;
  }

  get connected(): boolean {
    return this.#connected;
  }

  /** True when no command runs and a controller has acknowledged every entry. */
  get told(): boolean {
    return this.#running.size === 0 && this.#outbox.firstSequence === this.#outbox.nextSequence;
  }

  /** Resolves at the first welcome; from then on the agent reconnects by itself. */
  async start(): Promise<void> {
    this.#over = this.#stay();
    while (!this.#connected && !this.#stopping.signal.aborted)
      await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  /** Breaks the connection; the agent reconnects. */
  cut(): void {
    this.#session?.close();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    for (const running of this.#running.values()) running.abort();
    this.#session?.close();
    this.#tell();
    await this.#over;
  }

  async #stay(): Promise<void> {
    const backoff = new Backoff(random);
    const { signal } = this.#stopping;
    for (let round = 0; !signal.aborted; round++) {
      const { controllers } = this.#identity;
      const startedMs = realClock.monotonicMs();
      const was = await this.#hold(controllers[round % controllers.length] ?? "");
      backoff.note(was && realClock.monotonicMs() - startedMs >= SESSION_STEADY_MS ? "steady" : was ? "short" : "none");
      await wait(realClock, backoff.nextPauseMs(), signal);
    }
  }

  /** Runs one session. Returns true if a controller accepted it. */
  async #hold(address: string): Promise<boolean> {
    const session = (this.#session = this.#open(address));
    try {
      this.#welcomed(await session.start());
      await session.finished();
      return true;
    } catch {
      // The controller refused or was not reached, so the next one is tried after a pause.
      session.close();
      return false;
    } finally {
      this.#connected = false;
    }
  }

  #welcomed({ epoch, controllers }: Welcome): void {
    this.#epoch = Math.max(this.#epoch, epoch);
    if (controllers.length > 0) this.#identity = { ...this.#identity, controllers };
    this.#connected = true;
    this.#tell();
  }

  #tell(): void {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }

  #open(address: string): Session {
    const none = () => Promise.resolve();
    return new Session({
      address,
      wire: this.#transport.open(address, this.#identity),
      outbox: this.#outbox,
      clock: realClock,
      values: () => Promise.resolve({}),
      hello: () =>
        Promise.resolve({
          protocol: 1,
          agentVersion: "emulated",
          streamId: this.#outbox.streamId,
          firstSequence: this.#outbox.firstSequence,
          facts: undefined,
          desiredRevision: 0,
          highestEpoch: this.#epoch,
          tunnels: false,
        }),
      handler: {
        desired: async (state) => {
          this.desired = state;
        },
        renewed: none,
        controllers: ({ addresses }) => {
          this.#identity = { ...this.#identity, controllers: addresses };
          return Promise.resolve();
        },
        command: (command) => Promise.resolve(this.#take(command)),
        cancel: (cancel) => Promise.resolve(this.#cancel(cancel)),
        openTunnel: () => undefined,
      },
    });
  }

  #take(command: Command): void {
    const { id: commandId, epoch } = command;
    if (epoch < this.#epoch) return this.#answer({ commandId, state: "refused", message: "The epoch is over." });
    this.#answer({ commandId, state: "accepted", message: "" });
    if (this.begun.has(commandId)) return;
    this.begun.add(commandId);
    void this.#carryOut(command);
  }

  #answer(value: { commandId: string; state: string; message: string }): void {
    this.#session?.send({ $case: "command", value });
  }

  #cancel({ commandId, epoch }: Cancel): void {
    if (epoch >= this.#epoch) this.#running.get(commandId)?.abort("cancelled");
  }

  async #carryOut(command: Command): Promise<void> {
    const startedMs = realClock.nowMs();
    const ending = new AbortController();
    this.#running.set(command.id, ending);
    const late = realClock.after(command.deadlineMs - command.sentMs, () => ending.abort("timeout"));
    const stopped = new Promise<string>((resolve) =>
      ending.signal.addEventListener("abort", () => resolve(String(ending.signal.reason)), { once: true }),
    );
    try {
      const behaviour = Promise.resolve(this.#behave({ host: this.host, command, ended: ending.signal }));
      const end = await Promise.race([behaviour, stopped]);
      if (!this.#stopping.signal.aborted) this.#report(command, end, startedMs);
    } finally {
      late();
      this.#running.delete(command.id);
    }
  }

  #report({ id: commandId, traceparent }: Command, end: EmulatedEnd | string, startedMs: number): void {
    const endedMs = realClock.nowMs();
    const { output = [], code = 0 } = typeof end === "string" ? {} : end;
    const state = typeof end === "string" ? end : code === 0 ? "ok" : "failed";
    const result: CommandResult = { commandId, state, code, message: "", startedMs, endedMs };
    this.#outbox.append([...pieces(commandId, output), { $case: "result", value: result }], endedMs, traceparent);
  }
}

function pieces(commandId: string, output: NonNullable<EmulatedEnd["output"]>): Body[] {
  let offset = 0;
  return output.map((piece) => {
    const data = Buffer.from(piece);
    const value = { commandId, stderr: false, offset, data };
    offset += data.length;
    return { $case: "output", value } as const;
  });
}
