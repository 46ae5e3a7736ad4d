import type {
  Acknowledge,
  AgentFrame,
  Batch,
  Cancel,
  Command,
  ControllerFrame,
  Controllers,
  DesiredState,
  Entry,
  Hello,
  Renewed,
  Welcome,
} from "../proto/gen/agent/v1/agent.ts";
import { AppError, ERROR_CODES, errorText, type ErrorCode } from "../common/errors.ts";
import {
  SESSION_BATCH_MAX_BYTES,
  SESSION_HEARTBEAT_MS,
  SESSION_HEARTBEATS_MISSED_MAX,
  SESSION_VALUES_MS,
  SESSION_WELCOME_MS,
  SESSION_WINDOW_ENTRIES,
  SESSION_WINDOW_MAX_BYTES,
} from "../common/limits.ts";
import type { Clock } from "../common/time.ts";
import type { Outbox } from "./outbox.ts";
import { entryWeight } from "./outbox-segment.ts";
import type { FetchOptions, Wire } from "./transport.ts";

/** Acts on what a controller sends; called one after the other, in the order of the frames. */
export interface SessionHandler {
  desired(state: DesiredState): Promise<void>;
  command(command: Command): Promise<void>;
  cancel(cancel: Cancel): Promise<void>;
  renewed(renewed: Renewed): Promise<void>;
  controllers(controllers: Controllers): Promise<void>;
}

/** What a session needs of an outbox. */
export type SessionOutbox = Pick<
  Outbox,
  "streamId" | "firstSequence" | "nextSequence" | "version" | "acknowledge" | "renewStream" | "changed"
> & { readonly reader: (from: number) => Pick<ReturnType<Outbox["reader"]>, "next" | "close"> };

export interface SessionOptions {
  /** `host:port` of a controller's agent port. */
  readonly address: string;
  /** To that address, and the session's own. */
  readonly wire: Wire;
  readonly outbox: SessionOutbox;
  readonly clock: Clock;
  readonly hello: () => Promise<Hello>;
  readonly values: () => Promise<Record<string, string>>;
  readonly handler: SessionHandler;
}

type Frame = NonNullable<AgentFrame["frame"]>;

/** How long a session that is closed in good order has for what is still on its way. */
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
  /** A frame that takes long keeps those behind it unheard. */
  #taking = false;
  #controllerBeats = false;
  #valuesSentMs: number | undefined;
  #cancelBeat: () => void = () => undefined;
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

  /** Resolves when a controller took this agent; throws why not. */
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

  /** Resolves with the reason when it is over. */
  async finished(): Promise<Error> {
    await this.#ended;
    return this.#end instanceof Error ? this.#end : new AppError("cancelled", "The session was closed.");
  }

  /** Content by its digest, over the same connection. */
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
    if (reason !== undefined) return this.#wire.cancel();
    this.#wire.end();
    // A moment for what is still in the buffers; then the connection goes.
    this.#options.clock.after(SESSION_END_MS, () => this.#wire.cancel());
  }

  /** Resolves at the welcome and goes on reading until the end. */
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
        throw new AppError(isErrorCode(frame.value.code) ? frame.value.code : "denied", frame.value.message);
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
    this.#acknowledged = Math.max(welcome.acknowledged, outbox.firstSequence - 1);
    this.#sendEntries(this.#acknowledged + 1).catch((error: unknown) => this.#close(error));
    this.#scheduleBeat();
  }

  async #acknowledge({ streamId, throughSequence }: Acknowledge): Promise<void> {
    if (streamId !== this.#options.outbox.streamId) return;
    this.#acknowledged = Math.max(this.#acknowledged, throughSequence);
    this.#onTheWay = this.#onTheWay.filter(({ through }) => through > this.#acknowledged);
    await this.#options.outbox.acknowledge(throughSequence);
  }

  /** Keeps as much on the way as the window takes. */
  async #sendEntries(from: number): Promise<void> {
    const { outbox } = this.#options;
    const { signal } = this.#ending;
    const reader = outbox.reader(from);
    let sent = from - 1;
    try {
      while (!signal.aborted) {
        const seen = outbox.version;
        const room = this.#roomFor(sent);
        const entries = room > 0 ? await reader.next(room, SESSION_BATCH_MAX_BYTES) : [];
        if (entries.length === 0) await outbox.changed(seen, signal);
        else sent = await this.#sendBatch(entries);
      }
    } finally {
      await reader.close();
    }
  }

  #roomFor(sent: number): number {
    const bytes = this.#onTheWay.reduce((sum, batch) => sum + batch.bytes, 0);
    if (bytes >= SESSION_WINDOW_MAX_BYTES) return 0;
    return (this.#welcome?.windowEntries || SESSION_WINDOW_ENTRIES) - (sent - this.#acknowledged);
  }

  async #sendBatch(entries: Entry[]): Promise<number> {
    const through = entries.at(-1)?.sequence ?? 0;
    const bytes = entries.reduce((sum, { body }) => sum + (body ? entryWeight(body) : 0), 0);
    this.#onTheWay.push({ through, bytes });
    const batch: Batch = { streamId: this.#options.outbox.streamId, entries };
    if (!this.ended && !this.#wire.send({ frame: { $case: "batch", value: batch } }))
      await Promise.race([this.#wire.drained(), this.#ended]);
    return through;
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
    // A controller that never beats is watched by the connection's own keep-alive alone.
    if (this.#controllerBeats && silentMs > everyMs * SESSION_HEARTBEATS_MISSED_MAX) {
      this.#close(
        new AppError("deadline", `${this.address} has been silent for ${SESSION_HEARTBEATS_MISSED_MAX} heartbeats.`),
      );
      return;
    }
    this.send({ $case: "heartbeat", value: { timeMs: clock.nowMs(), values: await this.#values() } });
    this.#scheduleBeat();
  }

  /** Figures of the host cost more than a heartbeat and go with few of them. */
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
