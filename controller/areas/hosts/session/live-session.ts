import { createHash } from "node:crypto";
import { AppError, isAppError, errorText } from "../../../../common/errors.ts";
import {
  AGENT_RENEW_MIN_INTERVAL_MS,
  HOST_FACTS_MAX_ENTRIES,
  HOST_FACTS_MIN_INTERVAL_MS,
  HOST_STATES_MIN_INTERVAL_MS,
  POLICY_STATES_MAX,
  HOST_FACT_MAX_BYTES,
  DESIRED_RECHECK_MS,
  INGEST_BATCH_MAX_ENTRIES,
  SESSION_AGENT_SILENCE_MAX_MS,
  SESSION_HEARTBEAT_MS,
  SESSION_WINDOW_ENTRIES,
} from "../../../../common/limits.ts";
import type {
  AgentFrame,
  Batch,
  CommandState,
  ControllerFrame,
  Entry,
  Hello,
} from "../../../../proto/gen/agent/v1/agent.ts";
import type { Runtime } from "../../../runtime.ts";
import type {
  AgentChannel,
  AgentIdentity,
  AgentSession,
  DesiredStateSource,
  EntrySink,
  EntrySource,
} from "../types.ts";
import type { EntryPlace, EntryRoom } from "./entry-room.ts";
import { POLICY_STATE } from "../store.ts";
import { depotDigests, desiredFrame } from "./frames.ts";

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

/** One agent's stream, from the welcome to its end. */
export class LiveSession implements AgentSession {
  readonly identity: AgentIdentity;
  readonly epoch: number;
  readonly #with: LiveSessionDependencies;
  readonly #channel: AgentChannel;
  readonly #source: EntrySource;
  readonly #place: EntryPlace;
  #queue: Entry[] = [];
  #waitingForRoom = false;
  #accepting: Promise<void> | undefined;
  #lastSequence: number;
  #unacknowledged = 0;
  #digests: ReadonlySet<string> = new Set();
  #sendingDesired: Promise<void> | undefined;
  #desiredStale = false;
  /** To be sent even when its revision is the one sent before. */
  #desiredAsked = false;
  #facts: Record<string, string> = {};
  #factsAtMs: number | undefined;
  /** By a hash of them. */
  #toldStates: string | undefined;
  #writtenStates: string | undefined;
  #renewedAtMs: number | undefined;
  #heardAtMs: number;
  #beatenAtMs: number;
  #desiredAtMs: number;
  #desiredRevision: number | undefined;
  #stopTimer: () => void = () => undefined;
  #over = false;

  constructor(
    dependencies: LiveSessionDependencies,
    start: { identity: AgentIdentity; epoch: number; hello: Hello; channel: AgentChannel; acknowledged: number },
  ) {
    this.#with = dependencies;
    this.identity = start.identity;
    this.epoch = start.epoch;
    this.#channel = start.channel;
    this.#lastSequence = start.acknowledged;
    this.#place = dependencies.room.open();
    this.#source = { tenant: start.identity.tenant, host: start.identity.host, streamId: start.hello.streamId };
    this.#heardAtMs = dependencies.runtime.clock.monotonicMs();
    this.#beatenAtMs = this.#heardAtMs;
    this.#desiredAtMs = this.#heardAtMs;
    this.#watch();
  }

  get over(): boolean {
    return this.#over;
  }

  send(frame: ControllerFrame["frame"]): void {
    if (!this.#over) this.#channel.send({ frame });
  }

  close(code: string, message: string): void {
    if (!this.#over) this.#channel.close({ code, message });
  }

  async receive(frame: AgentFrame): Promise<void> {
    if (this.#over) return;
    this.#heardAtMs = this.#with.runtime.clock.monotonicMs();
    const body = frame.frame;
    switch (body?.$case) {
      case "batch":
        return this.#batch(body.value);
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
    this.#place.leave();
    await this.#with.ended(this);
  }

  /** Whether the content belongs to something this host is to have. */
  refersTo(digest: string): boolean {
    return this.#digests.has(digest);
  }

  /** Sends the desired state; calls while one is under way are answered by one more afterwards. */
  refresh(): Promise<void> {
    this.#desiredStale = true;
    this.#desiredAsked = true;
    return this.#sendStale();
  }

  /** Facts are written when the last ones are old enough; newer values wait for then. */
  async noteFacts(values: Readonly<Record<string, string>>): Promise<void> {
    const fitting = Object.entries(values).filter(
      ([name, value]) => name.length + Buffer.byteLength(value) <= HOST_FACT_MAX_BYTES,
    );
    const statesChanged = this.#noteStates(values);
    this.#facts = {
      ...this.#facts,
      ...Object.fromEntries(fitting.slice(0, HOST_FACTS_MAX_ENTRIES + POLICY_STATES_MAX)),
    };
    const nowMs = this.#with.runtime.clock.monotonicMs();
    const dueMs =
      this.#factsAtMs === undefined
        ? nowMs
        : this.#factsAtMs + (statesChanged ? HOST_STATES_MIN_INTERVAL_MS : HOST_FACTS_MIN_INTERVAL_MS);
    if (nowMs < dueMs || Object.keys(this.#facts).length === 0) return;
    this.#factsAtMs = nowMs;
    this.#writtenStates = this.#toldStates;
    const facts = this.#facts;
    this.#facts = {};
    await this.#with.facts(this, facts);
  }

  /** States of policies are told all at once: former ones go. True while what was told last is not written. */
  #noteStates(values: Readonly<Record<string, string>>): boolean {
    if (values[POLICY_STATE] !== undefined) {
      this.#facts = Object.fromEntries(Object.entries(this.#facts).filter(([name]) => !name.startsWith(POLICY_STATE)));
      const told = Object.entries(values).filter(([name]) => name.startsWith(POLICY_STATE));
      this.#toldStates = createHash("sha256").update(JSON.stringify(told.sort())).digest("base64");
    }
    return this.#toldStates !== this.#writtenStates;
  }

  #sendStale(): Promise<void> {
    this.#sendingDesired ??= this.#sendDesired();
    return this.#sendingDesired;
  }

  async #sendDesired(): Promise<void> {
    try {
      while (this.#desiredStale && !this.#over) {
        this.#desiredStale = false;
        this.#desiredAtMs = this.#with.runtime.clock.monotonicMs();
        const state = await this.#with.desired.desired(this.identity.tenant, this.identity.host);
        this.#digests = new Set(state.policies.flatMap((policy) => depotDigests(policy.depot)));
        const known = this.#desiredRevision === state.revision && !this.#desiredAsked;
        this.#desiredAsked = false;
        if (known) continue;
        this.#desiredRevision = state.revision;
        this.send(desiredFrame(state));
      }
    } finally {
      this.#sendingDesired = undefined;
    }
  }

  /** Changes are told by whoever makes them; a controller that could not tell this one is made good here. */
  async #recheck(): Promise<void> {
    try {
      this.#desiredStale = true;
      await this.#sendStale();
    } catch (error) {
      const { tenant, host } = this.identity;
      this.#with.runtime.log.warn(
        { tenant, host, reason: errorText(error) },
        "the desired state could not be read again",
      );
    }
  }

  /** Nothing more is read of the stream until there is room for these. */
  async #batch(batch: Batch): Promise<void> {
    if (batch.streamId !== this.#source.streamId)
      throw new AppError("invalid", "A batch is of another stream than the session's.");
    const fresh: Entry[] = [];
    for (const entry of batch.entries) {
      if (entry.sequence <= this.#lastSequence) continue; // sent twice
      this.#lastSequence = entry.sequence;
      fresh.push(entry);
    }
    this.#unacknowledged += fresh.length;
    // The agent may have sent before it read an acknowledgement, never more than a window beyond.
    if (this.#unacknowledged > 2 * SESSION_WINDOW_ENTRIES) {
      throw new AppError("limited", `More than ${SESSION_WINDOW_ENTRIES} entries are on the way unacknowledged.`);
    }
    if (fresh.length === 0) return;
    this.#waitingForRoom = true;
    await this.#place.take(fresh);
    this.#waitingForRoom = false;
    this.#heardAtMs = this.#with.runtime.clock.monotonicMs();
    this.#queue.push(...fresh);
    this.#accepting ??= this.#accept();
  }

  /** What came while the sink worked is handed over at once and acknowledged together. */
  async #accept(): Promise<void> {
    try {
      while (this.#queue.length > 0 && !this.#over) {
        const entries = this.#queue.slice(0, INGEST_BATCH_MAX_ENTRIES);
        this.#queue = this.#queue.slice(entries.length);
        const throughSequence = await this.#with.sink.accept(this.#source, entries);
        this.#unacknowledged -= entries.length;
        this.#place.give(entries);
        this.send({ $case: "acknowledge", value: { streamId: this.#source.streamId, throughSequence } });
      }
    } catch (error) {
      this.#broken("entries could not be kept", error);
    } finally {
      // In the same turn as the last look at the queue: what comes later is taken anew.
      this.#accepting = undefined;
    }
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

  /**
   * Heartbeats are answered; where none came one is sent all the same, because the agent's may wait behind much that it
   * sends.
   */
  #watch(): void {
    const { clock } = this.#with.runtime;
    this.#stopTimer = clock.after(SESSION_HEARTBEAT_MS, () => {
      if (this.#over) return;
      const nowMs = clock.monotonicMs();
      if (!this.#waitingForRoom && nowMs - this.#heardAtMs > SESSION_AGENT_SILENCE_MAX_MS)
        return this.close("deadline", "Nothing was heard of the agent for too long.");
      if (nowMs - this.#beatenAtMs >= SESSION_HEARTBEAT_MS) this.#beat();
      if (nowMs - this.#desiredAtMs >= DESIRED_RECHECK_MS) void this.#recheck();
      this.#watch();
    });
  }

  /** The agent comes again and sends what was not acknowledged. */
  #broken(what: string, error: unknown): void {
    const code = isAppError(error) ? error.code : "internal";
    const { tenant, host } = this.identity;
    this.#with.runtime.log.error({ tenant, host, code, reason: errorText(error) }, what);
    this.close(code, isAppError(error) ? error.message : "The controller could not keep what was sent.");
  }
}
