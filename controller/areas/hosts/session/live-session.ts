import { AppError, isAppError, errorText } from "../../../../common/errors.ts";
import {
  AGENT_RENEW_MIN_INTERVAL_MS,
  SESSION_AGENT_SILENCE_MAX_MS,
  SESSION_HEARTBEAT_MS,
} from "../../../../common/limits.ts";
import type { AgentFrame, CommandState, ControllerFrame, Hello } from "../../../../proto/gen/agent/v1/agent.ts";
import type { Runtime } from "../../../runtime.ts";
import {
  PIN_REFUSED,
  type AgentChannel,
  type AgentIdentity,
  type AgentSession,
  type DesiredStateSource,
  type EntrySink,
  type EntrySource,
} from "../types.ts";
import { entrySlices } from "../entry-slices.ts";
import { DesiredState } from "./desired-state.ts";
import { EntryIntake } from "./entry-intake.ts";
import type { EntryRoom } from "./entry-room.ts";
import { HostFacts } from "./host-facts.ts";

export interface LiveSessionDependencies {
  readonly runtime: Runtime;
  readonly desired: DesiredStateSource;
  readonly sink: EntrySink;
  readonly room: EntryRoom;
  readonly renew: (
    identity: AgentIdentity,
    csr: Uint8Array,
  ) => Promise<{ certificate: Uint8Array; authorities: readonly Uint8Array[] }>;
  readonly facts: (session: LiveSession, values: Readonly<Record<string, string>>) => Promise<void>;
  readonly commandState: (session: LiveSession, state: CommandState) => void;
  readonly ended: (session: LiveSession) => Promise<void>;
}

/** One agent's session, from the welcome frame to its end. */
export class LiveSession implements AgentSession {
  readonly identity: AgentIdentity;
  readonly epoch: number;
  /** True if the agent supports `openTunnel`. */
  readonly canTunnel: boolean;
  readonly #with: LiveSessionDependencies;
  readonly #channel: AgentChannel;
  readonly #source: EntrySource;
  readonly #desired: DesiredState;
  readonly #entries: EntryIntake;
  readonly #facts: HostFacts;
  #renewedAtMs: number | undefined;
  #heardAtMs: number;
  #beatenAtMs: number;
  #stopTimer: () => void = () => undefined;
  #over = false;

  constructor(
    dependencies: LiveSessionDependencies,
    start: { identity: AgentIdentity; epoch: number; hello: Hello; channel: AgentChannel },
  ) {
    const { runtime, sink, room } = dependencies;
    const { identity, epoch, hello, channel } = start;
    this.#with = dependencies;
    this.identity = identity;
    this.epoch = epoch;
    this.canTunnel = hello.tunnels;
    this.#channel = channel;
    const session = {
      send: (frame: ControllerFrame["frame"]) => this.send(frame),
      isOver: () => this.#over,
    };
    this.#source = { tenant: identity.tenant, host: identity.host, streamId: hello.streamId };
    this.#desired = new DesiredState({ ...session, runtime, source: dependencies.desired, identity });
    this.#entries = new EntryIntake({
      ...session,
      sink,
      room,
      source: this.#source,
      slices: entrySlices(identity.tenant, runtime.clock),
      failed: (error) => this.#broken("entries could not be kept", error),
    });
    this.#facts = new HostFacts(runtime.clock, (values) => dependencies.facts(this, values));
    this.#heardAtMs = runtime.clock.monotonicMs();
    this.#beatenAtMs = this.#heardAtMs;
    this.#watch();
  }

  get over(): boolean {
    return this.#over;
  }

  send(frame: ControllerFrame["frame"]): void {
    if (!this.#over) this.#channel.send({ frame });
  }

  close(code: string, message: string, askAgain = false): void {
    if (!this.#over) this.#channel.close({ code, message, askAgain });
  }

  async receive(frame: AgentFrame): Promise<void> {
    if (this.#over) return;
    this.#heardAtMs = this.#with.runtime.clock.monotonicMs();
    const body = frame.frame;
    switch (body?.$case) {
      case "batch":
        await this.#entries.take(body.value);
        // Waiting for room may have taken long. During that time the stream was not read.
        this.#heardAtMs = this.#with.runtime.clock.monotonicMs();
        return;
      case "ask":
        return this.send({ $case: "told", value: await this.#with.sink.told(this.#source, body.value) });
      case "heartbeat":
        this.#beat();
        return this.noteFacts(body.value.values);
      case "command":
        return this.#with.commandState(this, body.value);
      case "renew":
        return this.#renew(body.value.csr);
      case "hello":
        throw new AppError("invalid", "A session has one hello.");
      case undefined:
        return; // a kind of frame newer than this controller
    }
  }

  async ended(): Promise<void> {
    if (this.#over) return;
    this.#over = true;
    this.#stopTimer();
    this.#entries.leave();
    await this.#with.ended(this);
  }

  /** Returns true if the content belongs to a policy of this host. */
  refersTo(digest: string): boolean {
    return this.#desired.refersTo(digest);
  }

  /** Sends the desired state. Calls while it is being sent are combined into one more send. */
  refresh(): Promise<void> {
    return this.#desired.refresh();
  }

  /** Writes the facts if the last write is old enough; otherwise newer values wait for the next write. */
  noteFacts(values: Readonly<Record<string, string>>): Promise<void> {
    return this.#facts.note(values);
  }

  async #renew(csr: Uint8Array): Promise<void> {
    const nowMs = this.#with.runtime.clock.monotonicMs();
    if (this.#renewedAtMs !== undefined && nowMs - this.#renewedAtMs < AGENT_RENEW_MIN_INTERVAL_MS) {
      throw new AppError("limited", "Certificates are renewed too often.");
    }
    this.#renewedAtMs = nowMs;
    const { certificate, authorities } = await this.#with.renew(this.identity, csr);
    const value = { certificate: Buffer.from(certificate), authorities: authorities.map((one) => Buffer.from(one)) };
    this.send({ $case: "renewed", value });
  }

  #beat(): void {
    this.#beatenAtMs = this.#with.runtime.clock.monotonicMs();
    this.send({ $case: "heartbeat", value: { timeMs: this.#with.runtime.clock.nowMs(), values: {} } });
  }

  /** Answers heartbeats. Sends one even if none arrived: the agent's heartbeat may wait behind a long transfer. */
  #watch(): void {
    const { clock } = this.#with.runtime;
    this.#stopTimer = clock.after(SESSION_HEARTBEAT_MS, () => {
      if (this.#over) return;
      const nowMs = clock.monotonicMs();
      if (!this.#entries.isWaitingForRoom && nowMs - this.#heardAtMs > SESSION_AGENT_SILENCE_MAX_MS)
        return this.close("deadline", "Nothing was heard of the agent for too long.");
      if (nowMs - this.#beatenAtMs >= SESSION_HEARTBEAT_MS) this.#beat();
      this.#desired.recheck(nowMs);
      this.#watch();
    });
  }

  /** Ends the session. The agent reconnects and sends unacknowledged entries again. */
  #broken(what: string, error: unknown): void {
    const code = isAppError(error) ? error.code : "internal";
    const { tenant, host } = this.identity;
    this.#with.runtime.log.error({ tenant, host, code, reason: errorText(error) }, what);
    const message = isAppError(error) ? error.message : "The controller could not keep what was sent.";
    this.close(code, message, isAppError(error) && error.details?.["reason"] === PIN_REFUSED);
  }
}
