import type {
  Acknowledge,
  AgentFrame,
  Ask,
  Batch,
  Cancel,
  Command,
  ControllerFrame,
  Controllers,
  DesiredState,
  Hello,
  OpenTunnel,
  Refused,
  Renewed,
  Told,
  Welcome,
} from "../../proto/gen/agent/v1/agent.ts";
import { AppError, ERROR_CODES, errorText, type ErrorCode } from "../../common/errors.ts";
import {
  SESSION_HEARTBEAT_MS,
  SESSION_HEARTBEATS_MISSED_MAX,
  SESSION_VALUES_MS,
  SESSION_WELCOME_MS,
  SESSION_WINDOW_ENTRIES,
  SESSION_WINDOW_MAX_BYTES,
} from "../../common/limits.ts";
import type { Clock } from "../../common/time.ts";
import { Batches, type BatchOutbox } from "../outbox/batches.ts";
import type { Outbox } from "../outbox/outbox.ts";
import { entryWeight } from "../outbox/entries.ts";
import type { FetchOptions, TunnelCall, Wire } from "./transport.ts";

/** Handles the frames of a controller. The session calls it for one frame at a time, in their order. */
export interface SessionHandler {
  desired(state: DesiredState): Promise<void>;
  command(command: Command): Promise<void>;
  cancel(cancel: Cancel): Promise<void>;
  renewed(renewed: Renewed): Promise<void>;
  /** `call` is a stream to the controller that requested the tunnel. */
  openTunnel(asked: OpenTunnel, call: TunnelCall): void;
  controllers(controllers: Controllers): Promise<void>;
}

/** The parts of an outbox that a session needs. */
export type SessionOutbox = BatchOutbox &
  Pick<Outbox, "firstSequence" | "nextSequence" | "version" | "acknowledge" | "renewStream" | "changed" | "inTurn"> & {
    readonly pins: Pick<Outbox["pins"], "forget">;
  };

export interface SessionOptions {
  /** `host:port` of a controller's agent port. */
  readonly address: string;
  /** The connection to that address. Only this session uses it. */
  readonly wire: Wire;
  readonly outbox: SessionOutbox;
  readonly clock: Clock;
  readonly hello: () => Promise<Hello>;
  readonly values: () => Promise<Record<string, string>>;
  readonly handler: SessionHandler;
}

type Frame = NonNullable<AgentFrame["frame"]>;

/** Time for frames that are still buffered when a session is closed without an error. */
const SESSION_END_MS = 200;

/** One connection to one controller, from hello to its end. */
export class Session {
  readonly #options: SessionOptions;
  readonly #wire: Wire;
  readonly #ending = new AbortController();
  #welcome: Welcome | undefined;
  #acknowledged = 0;
  #onTheWay: { through: number; bytes: number }[] = [];
  #heardMs: number;
  /**
   * True while a frame is handled. The frames after it are not read in that time, so it does not count as silence of
   * the controller.
   */
  #taking = false;
  #controllerBeats = false;
  #valuesSentMs: number | undefined;
  #cancelBeat: () => void = () => undefined;
  #told: (told: Told | undefined) => void = () => undefined;
  #end: unknown;
  readonly #ended: Promise<void>;

  constructor(options: SessionOptions) {
    this.#options = options;
    this.#wire = options.wire;
    this.#heardMs = options.clock.monotonicMs();
    this.#ended = new Promise((resolve) =>
      this.#ending.signal.addEventListener("abort", () => resolve(), { once: true }),
    );
    void options.wire.over.then((reason) => this.#close(reason));
  }

  get address(): string {
    return this.#options.address;
  }

  get ended(): boolean {
    return this.#ending.signal.aborted;
  }

  /**
   * Resolves with the welcome when the controller accepts this agent. Throws the reason of a refusal or of the end of
   * the session, `AppError("deadline")` after `SESSION_WELCOME_MS`.
   */
  async start(): Promise<Welcome> {
    const late = () =>
      this.#close(new AppError("deadline", `${this.address} did not answer within ${SESSION_WELCOME_MS} ms.`));
    const cancel = this.#options.clock.after(SESSION_WELCOME_MS, late);
    try {
      this.send({ $case: "hello", value: await this.#options.hello() });
      const welcomed = this.#receive();
      return await Promise.race([welcomed, this.finished().then((error) => Promise.reject(error))]);
    } finally {
      cancel();
    }
  }

  /** Resolves with the reason when the session has ended. */
  async finished(): Promise<Error> {
    await this.#ended;
    return this.#end instanceof Error ? this.#end : new AppError("cancelled", "The session was closed.");
  }

  /** Reads content by its digest over the connection of this session. */
  fetch(
    request: { readonly digest: string; readonly offset: number },
    options: FetchOptions,
  ): AsyncIterable<Uint8Array> {
    return this.#wire.fetch(request, options);
  }

  send(frame: Frame): void {
    if (!this.ended) this.#wire.send({ frame });
  }

  close(): void {
    this.#close(undefined);
  }

  #close(reason: unknown): void {
    if (this.ended) return;
    this.#end = reason;
    this.#cancelBeat();
    this.#ending.abort();
    this.#told(undefined);
    if (reason !== undefined) return this.#wire.cancel();
    this.#wire.end();
    // Buffered frames get this time to leave. Then the connection is closed.
    this.#options.clock.after(SESSION_END_MS, () => this.#wire.cancel());
  }

  /** Reads frames until the session ends. Resolves already at the welcome. */
  #receive(): Promise<Welcome> {
    return new Promise((resolve, reject) => {
      this.#read(resolve).catch((error: unknown) => {
        const reason = asAppError(error, this.address);
        this.#close(reason);
        reject(reason);
      });
    });
  }

  async #read(welcomed: (welcome: Welcome) => void): Promise<void> {
    for await (const message of this.#wire.frames) {
      if (this.ended) return;
      this.#taking = true;
      const { frame } = message;
      if (frame?.$case === "welcome") {
        await this.#begin(frame.value);
        welcomed(frame.value);
      } else if (frame) await this.#take(frame);
      this.#taking = false;
      this.#heardMs = this.#options.clock.monotonicMs();
    }
  }

  async #take(frame: Exclude<NonNullable<ControllerFrame["frame"]>, { $case: "welcome" }>): Promise<void> {
    const { handler } = this.#options;
    switch (frame.$case) {
      case "refused":
        return this.#refused(frame.value);
      case "told":
        return this.#told(frame.value);
      case "acknowledge":
        return this.#acknowledge(frame.value);
      case "desired":
        return handler.desired(frame.value);
      case "command":
        return handler.command(frame.value);
      case "cancel":
        return handler.cancel(frame.value);
      case "renewed":
        return handler.renewed(frame.value);
      case "openTunnel":
        return handler.openTunnel(frame.value, this.#wire.tunnel());
      case "controllers":
        return handler.controllers(frame.value);
      case "heartbeat":
        this.#controllerBeats = true;
        return;
    }
  }

  async #begin(welcome: Welcome): Promise<void> {
    const { outbox } = this.#options;
    if (this.#welcome) throw new AppError("invalid", `${this.address} said welcome twice.`);
    this.#welcome = welcome;
    if (welcome.acknowledged >= outbox.nextSequence) {
      await outbox.renewStream();
      throw new AppError(
        "conflict",
        "The controllers know more of this outbox than it holds: it goes on as a new stream.",
      );
    }
    await outbox.acknowledge(welcome.acknowledged);
    this.#acknowledged = outbox.acknowledged;
    outbox.inTurn(() => this.#sendEntries()).catch((error: unknown) => this.#close(error));
    this.#scheduleBeat();
  }

  async #refused({ code, message, askAgain }: Refused): Promise<never> {
    if (askAgain) await this.#options.outbox.pins.forget();
    throw new AppError(isErrorCode(code) ? code : "denied", message);
  }

  async #acknowledge({ streamId, throughSequence }: Acknowledge): Promise<void> {
    if (streamId !== this.#options.outbox.streamId) return;
    this.#acknowledged = Math.max(this.#acknowledged, throughSequence);
    this.#onTheWay = this.#onTheWay.filter(({ through }) => through > this.#acknowledged);
    await this.#options.outbox.acknowledge(throughSequence);
  }

  /** Sends batches while the window has room for them, until the session ends. */
  async #sendEntries(): Promise<void> {
    const { outbox, clock } = this.#options;
    const { signal } = this.#ending;
    const batches = new Batches({ outbox, clock, ask: (ask) => this.#ask(ask) }, outbox.acknowledged);
    try {
      while (!signal.aborted) {
        const seen = outbox.version;
        const batch = await batches.next(this.#roomFor(batches.sent));
        if (batch) await this.#sendBatch(batch);
        else await outbox.changed(seen, signal);
      }
    } finally {
      await batches.close();
    }
  }

  #roomFor(sent: number): number {
    const bytes = this.#onTheWay.reduce((sum, batch) => sum + batch.bytes, 0);
    if (bytes >= SESSION_WINDOW_MAX_BYTES) return 0;
    return (this.#welcome?.windowEntries || SESSION_WINDOW_ENTRIES) - (sent - this.#acknowledged);
  }

  /** Asks the controller, and waits for its answer. `AppError("cancelled")` when the session ends first. */
  async #ask(value: Ask): Promise<Told> {
    const answer = new Promise<Told | undefined>((resolve) => (this.#told = resolve));
    this.send({ $case: "ask", value });
    const told = this.ended ? undefined : await answer;
    if (!told) throw new AppError("cancelled", "The session ended.");
    return told;
  }

  async #sendBatch(batch: Batch): Promise<void> {
    const through = batch.entries.at(-1)?.sequence ?? 0;
    const bytes = batch.entries.reduce((sum, entry) => sum + entryWeight(entry), 0);
    this.#onTheWay.push({ through, bytes });
    if (!this.ended && !this.#wire.send({ frame: { $case: "batch", value: batch } }))
      await Promise.race([this.#wire.drained(), this.#ended]);
  }

  #scheduleBeat(): void {
    const everyMs = this.#welcome?.heartbeatMs || SESSION_HEARTBEAT_MS;
    if (this.ended) return;
    this.#cancelBeat = this.#options.clock.after(everyMs, () => {
      this.#beat(everyMs).catch((error: unknown) => this.#close(error));
    });
  }

  async #beat(everyMs: number): Promise<void> {
    const { clock } = this.#options;
    const silentMs = this.#taking ? 0 : clock.monotonicMs() - this.#heardMs;
    // A controller that sends no heartbeats is watched only by the keep-alive of the connection.
    if (this.#controllerBeats && silentMs > everyMs * SESSION_HEARTBEATS_MISSED_MAX) {
      this.#close(
        new AppError("deadline", `${this.address} has been silent for ${SESSION_HEARTBEATS_MISSED_MAX} heartbeats.`),
      );
      return;
    }
    this.send({ $case: "heartbeat", value: { timeMs: clock.nowMs(), values: await this.#values() } });
    this.#scheduleBeat();
  }

  /**
   * Figures of the host. They cost more than a heartbeat, so they are sent at most every `SESSION_VALUES_MS`; otherwise
   * empty.
   */
  async #values(): Promise<Record<string, string>> {
    const nowMs = this.#options.clock.monotonicMs();
    if (this.#valuesSentMs !== undefined && nowMs - this.#valuesSentMs < SESSION_VALUES_MS) return {};
    this.#valuesSentMs = nowMs;
    return this.#options.values();
  }
}

function isErrorCode(value: string): value is ErrorCode {
  return Object.hasOwn(ERROR_CODES, value);
}

function asAppError(error: unknown, address: string): AppError {
  if (error instanceof AppError) return error;
  return new AppError("unavailable", `${address}: ${errorText(error)}`, { cause: error });
}
