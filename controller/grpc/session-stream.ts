import { status, type ServerDuplexStream } from "@grpc/grpc-js";
import { AppError, errorText, isAppError } from "../../common/errors.ts";
import { AGENT_HELLO_DEADLINE_MS, AGENT_SEND_QUEUE_MAX_FRAMES } from "../../common/limits.ts";
import type { AgentFrame, ControllerFrame, Hello } from "../../proto/gen/agent/v1/agent.ts";
import type { AgentChannel, AgentIdentity, AgentSession, SessionEnd } from "../areas/hosts/index.ts";
import type { Runtime } from "../runtime.ts";
import type { ReadFrame } from "./agent-frame.ts";

export type SessionCall = ServerDuplexStream<AgentFrame, ControllerFrame>;

/** The part of a gRPC call that a session uses; the simulation has its own implementation. */
export interface SessionWire {
  readonly writableLength: number;
  on(event: "data", listener: (frame: AgentFrame) => void): unknown;
  on(event: "end" | "cancelled" | "close" | "error", listener: () => void): unknown;
  write(frame: ControllerFrame): unknown;
  end(): unknown;
  /** Ends the call with a status. */
  emit(event: "error", reason: unknown): unknown;
  pause(): unknown;
  resume(): unknown;
}

export interface SessionStreamDependencies {
  readonly runtime: Runtime;
  readonly open: (identity: AgentIdentity, hello: Hello, channel: AgentChannel) => Promise<AgentSession>;
  /** Called once when the stream has ended for any reason. */
  readonly over: () => void;
}

/** One agent stream: reads a frame, processes it, reads the next. An error becomes the last frame, `refused`. */
export class SessionStream implements AgentChannel {
  readonly #with: SessionStreamDependencies;
  readonly #call: SessionWire;
  readonly #identity: AgentIdentity;
  readonly #stopTimer: () => void;
  #session: AgentSession | undefined;
  #greeted = false;
  #closing = false;
  #over = false;

  constructor(dependencies: SessionStreamDependencies, call: SessionWire, identity: AgentIdentity) {
    this.#with = dependencies;
    this.#call = call;
    this.#identity = identity;
    this.#stopTimer = dependencies.runtime.clock.after(AGENT_HELLO_DEADLINE_MS, () => {
      if (!this.#greeted) this.close({ code: "deadline", message: "No hello came in time." });
    });
    call.on("data", (frame: ReadFrame) => void this.#read(frame));
    call.on("end", () => this.close());
    call.on("cancelled", () => void this.#end());
    call.on("close", () => void this.#end());
    call.on("error", () => void this.#end());
  }

  send(frame: ControllerFrame): void {
    if (this.#closing) return;
    if (this.#call.writableLength >= AGENT_SEND_QUEUE_MAX_FRAMES) {
      this.#with.runtime.log.warn({ ...this.#identity }, "an agent reads too slowly; its stream is closed");
      this.#closing = true;
      this.#call.emit("error", { code: status.RESOURCE_EXHAUSTED, details: "The agent reads too slowly." });
      return;
    }
    this.#call.write(frame);
  }

  close(reason?: SessionEnd): void {
    if (this.#closing) return;
    this.#closing = true;
    if (reason) this.#call.write({ frame: { $case: "refused", value: { askAgain: false, ...reason } } });
    this.#call.end();
    this.#call.resume();
    void this.#end();
  }

  async #read(frame: ReadFrame): Promise<void> {
    if (this.#closing) return;
    this.#call.pause();
    try {
      if (frame.refused) throw frame.refused;
      await (this.#greeted ? this.#session?.receive(frame) : this.#greet(frame));
    } catch (error) {
      this.#refuse(error);
    }
    if (!this.#over) this.#call.resume();
  }

  async #greet(frame: AgentFrame): Promise<void> {
    if (frame.frame?.$case !== "hello") throw new AppError("invalid", "The first frame of a session is a hello.");
    this.#greeted = true;
    const session = await this.#with.open(this.#identity, frame.frame.value, this);
    this.#session = session;
    if (this.#over) await session.ended();
  }

  #refuse(error: unknown): void {
    const { tenant, host } = this.#identity;
    if (isAppError(error)) {
      this.#with.runtime.log.info({ tenant, host, code: error.code, reason: error.message }, "an agent was refused");
      this.close({ code: error.code, message: error.message });
      return;
    }
    this.#with.runtime.log.error({ tenant, host, reason: errorText(error), err: error }, "a frame of an agent failed");
    this.close({ code: "internal", message: "The controller failed; its log has the details." });
  }

  async #end(): Promise<void> {
    if (this.#over) return;
    this.#over = true;
    this.#closing = true;
    this.#stopTimer();
    this.#with.over();
    try {
      await this.#session?.ended();
    } catch (error) {
      this.#with.runtime.log.warn(
        { ...this.#identity, reason: errorText(error) },
        "the end of an agent session failed",
      );
    }
  }
}
