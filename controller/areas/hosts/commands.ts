import {
  AGENT_COMMANDS_WAITING_MAX,
  COMMAND_CANCEL_GRACE_MS,
  COMMAND_LINE_MAX_BYTES,
} from "../../../common/limits.ts";
import type { Command, CommandOutput, CommandResult, CommandState, Entry } from "../../../proto/gen/agent/v1/agent.ts";
import type { Runtime } from "../../runtime.ts";
import type { NewRecord, Objects } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import { depotDigests, depotFrame } from "./session/frames.ts";
import type { LiveSession } from "./session/live-session.ts";
import { COMMAND_CLASS, OUTPUT_CLASS } from "./store.ts";
import type { CommandOutcome, DispatchOptions, EntrySource, FinalState, HostCommand, Target, Transport } from "./types.ts";

const MESSAGE_MAX_CHARACTERS = 8_000;

export interface AgentCommandsDependencies {
  readonly runtime: Runtime;
  readonly objects: Objects;
  readonly live: (tenant: string, host: string) => LiveSession | undefined;
  /** The controller acting for a tenant by itself. */
  readonly actAs: (tenant: string, traceparent: string) => Promise<Principal>;
}

/** Where the entries `output` and `result` of agents go: kept before they are acknowledged, then told to whoever waits. */
export interface CommandEntries {
  /** Idempotent. Takes the entries in their order and leaves out those of other kinds. */
  accept(source: EntrySource, entries: readonly Entry[]): Promise<void>;
}

interface Waiting {
  readonly target: Target;
  readonly command: HostCommand;
  readonly options: DispatchOptions;
  readonly startedMs: number;
  readonly outcome: Promise<CommandOutcome>;
  readonly finish: (end: Ending) => void;
  /** Output bytes passed on so far. */
  offset: number;
  sentUnder: number | undefined;
}

interface Ending {
  readonly state: FinalState;
  readonly message: string;
  readonly code?: number;
  readonly startedMs?: number;
  readonly endedMs?: number;
}

/**
 * Commands over agent sessions. A command that was sent waits for its result until its deadline, whatever happens to the session: with
 * the next one it is sent again under the same id, and the agent answers from its journal.
 */
export class AgentCommands implements Transport, CommandEntries {
  readonly #with: AgentCommandsDependencies;
  readonly #waiting = new Map<string, Waiting>();

  constructor(dependencies: AgentCommandsDependencies) {
    this.#with = dependencies;
  }

  run(target: Target, command: HostCommand, options: DispatchOptions): Promise<CommandOutcome> {
    const key = keyOf(target.tenant, target.host, options.commandId);
    const running = this.#waiting.get(key);
    if (running) return running.outcome;
    const refused = this.#refusal(target, command, options);
    if (refused) return Promise.resolve(this.#outcome(target, this.#with.runtime.clock.nowMs(), refused));
    const waiting = this.#wait(key, target, { command, options });
    this.#send(waiting);
    return waiting.outcome;
  }

  /** A session began: whatever its host still owes an answer is sent again. */
  resume(session: LiveSession): void {
    const { tenant, host } = session.identity;
    for (const waiting of this.#waiting.values()) {
      if (waiting.target.tenant === tenant && waiting.target.host === host && !waiting.options.signal?.aborted) this.#send(waiting);
    }
  }

  state(session: LiveSession, state: CommandState): void {
    if (state.state !== "refused") return;
    const { tenant, host } = session.identity;
    const waiting = this.#waiting.get(keyOf(tenant, host, state.commandId));
    waiting?.finish({ state: "failed", message: state.message.slice(0, MESSAGE_MAX_CHARACTERS) || "The agent refused the command." });
  }

  /** Whether the content belongs to a deployment the host is working on. */
  refersTo(tenant: string, host: string, digest: string): boolean {
    for (const { target, command } of this.#waiting.values()) {
      const mine = target.tenant === tenant && target.host === host;
      if (mine && command.kind === "deploy" && depotDigests(command).includes(digest)) return true;
    }
    return false;
  }

  async accept(source: EntrySource, entries: readonly Entry[]): Promise<void> {
    await this.#keep(source, entries, { class: OUTPUT_CLASS, valuesOf: (entry) => outputValues(source.host, entry) });
    await this.#keep(source, entries, { class: COMMAND_CLASS, valuesOf: (entry) => resultValues(source.host, entry) });
    for (const entry of entries) {
      if (entry.body?.$case === "output") this.#pass(source, entry.body.value);
      if (entry.body?.$case === "result") this.#finish(source, entry.body.value);
    }
  }

  async #keep(source: EntrySource, entries: readonly Entry[], kind: { class: string; valuesOf: (entry: Entry) => NewRecord["values"] | undefined }): Promise<void> {
    const records: NewRecord[] = [];
    for (const entry of entries) {
      const values = kind.valuesOf(entry);
      if (values) records.push({ values, timeMs: entry.timeMs, identity: `${source.streamId}/${entry.sequence}/0` });
    }
    if (records.length === 0) return;
    const principal = await this.#with.actAs(source.tenant, entries[0]?.traceparent ?? "");
    await this.#with.objects.ingest(principal, principal.ospace + kind.class, records);
  }

  /** Every byte once: what came before (a replay after a reconnect) is cut off. */
  #pass(source: EntrySource, output: CommandOutput): void {
    const waiting = this.#waiting.get(keyOf(source.tenant, source.host, output.commandId));
    if (!waiting) return;
    const fresh = output.data.subarray(Math.max(0, waiting.offset - output.offset));
    if (fresh.length === 0) return;
    waiting.offset = output.offset + output.data.length;
    waiting.options.onOutput?.({ stderr: output.stderr, data: fresh });
  }

  #finish(source: EntrySource, result: CommandResult): void {
    const waiting = this.#waiting.get(keyOf(source.tenant, source.host, result.commandId));
    if (!waiting) return;
    const state = finalState(result.state);
    const exited = state === "ok" || state === "failed";
    waiting.finish({
      state,
      message: result.message || (state === "ok" ? "" : messageFor(result)),
      startedMs: result.startedMs,
      endedMs: result.endedMs,
      ...(exited && result.state !== "interrupted" ? { code: result.code } : {}),
    });
  }

  #refusal(target: Target, command: HostCommand, options: DispatchOptions): Ending | undefined {
    if (options.signal?.aborted) return { state: "cancelled", message: "The command was cancelled before it was sent." };
    if (!this.#with.live(target.tenant, target.host)) return { state: "unreachable", message: `The agent of ${target.host} is not connected.` };
    if (command.kind === "exec" && Buffer.byteLength(command.line) > COMMAND_LINE_MAX_BYTES) {
      return { state: "failed", message: `The command line is longer than ${COMMAND_LINE_MAX_BYTES} bytes.` };
    }
    if (this.#waiting.size >= AGENT_COMMANDS_WAITING_MAX) return { state: "failed", message: "Too many commands wait for their results." };
    return undefined;
  }

  #wait(key: string, target: Target, work: { readonly command: HostCommand; readonly options: DispatchOptions }): Waiting {
    const { options } = work;
    const { clock } = this.#with.runtime;
    const startedMs = clock.nowMs();
    let resolve: (outcome: CommandOutcome) => void = () => undefined;
    const outcome = new Promise<CommandOutcome>((done) => (resolve = done));
    const finish = (end: Ending) => {
      if (!this.#waiting.delete(key)) return;
      stopTimer();
      stopGrace();
      options.signal?.removeEventListener("abort", cancel);
      resolve(this.#outcome(target, startedMs, end));
    };
    const waiting: Waiting = { target, ...work, startedMs, outcome, finish, offset: 0, sentUnder: undefined };
    let stopGrace: () => void = () => undefined;
    const cancel = () => {
      this.#cancel(waiting);
      const told = this.#with.live(target.tenant, target.host) !== undefined;
      stopGrace = clock.after(told ? COMMAND_CANCEL_GRACE_MS : 0, () => finish({ state: "cancelled", message: "The command was cancelled." }));
    };
    const stopTimer = clock.after(options.timeoutMs, () => {
      this.#cancel(waiting);
      finish({ state: "timeout", message: `The command did not end within ${options.timeoutMs} ms.` });
    });
    options.signal?.addEventListener("abort", cancel, { once: true });
    this.#waiting.set(key, waiting);
    return waiting;
  }

  #send(waiting: Waiting): void {
    const { target, command, options } = waiting;
    const session = this.#with.live(target.tenant, target.host);
    if (!session || waiting.sentUnder === session.epoch) return;
    waiting.sentUnder = session.epoch;
    const value: Command = {
      id: options.commandId,
      epoch: session.epoch,
      deadlineMs: waiting.startedMs + options.timeoutMs,
      traceparent: target.traceparent,
      sentMs: this.#with.runtime.clock.nowMs(),
      body: bodyOf(command),
    };
    session.send({ $case: "command", value });
  }

  #cancel(waiting: Waiting): void {
    const session = this.#with.live(waiting.target.tenant, waiting.target.host);
    session?.send({ $case: "cancel", value: { commandId: waiting.options.commandId, epoch: session.epoch } });
  }

  #outcome(target: Target, startedMs: number, end: Ending): CommandOutcome {
    return { host: target.host, startedMs, endedMs: this.#with.runtime.clock.nowMs(), ...end };
  }
}

function keyOf(tenant: string, host: string, commandId: string): string {
  return `${tenant}/${host}/${commandId}`;
}

function bodyOf(command: HostCommand): Command["body"] {
  switch (command.kind) {
    case "exec":
      return {
        $case: "exec",
        value: { line: command.line, environment: { ...command.environment }, depot: command.depot ?? "", streamOutput: true, stdin: Buffer.alloc(0) },
      };
    case "deploy":
      return { $case: "deploy", value: depotFrame(command) };
    case "undeploy":
      return {
        $case: "undeploy",
        value: { name: command.name, version: command.version, command: command.command ?? "", remotePath: command.remotePath ?? "" },
      };
  }
}

function finalState(state: string): FinalState {
  return state === "ok" || state === "timeout" || state === "cancelled" || state === "expired" ? state : "failed";
}

function messageFor(result: CommandResult): string {
  if (result.state === "interrupted") return "The agent was interrupted while the command ran.";
  return result.state === "failed" ? `The command ended with code ${result.code}.` : `The command ended as ${finalState(result.state)}.`;
}

function outputValues(host: string, entry: Entry): NewRecord["values"] | undefined {
  if (entry.body?.$case !== "output") return undefined;
  const { commandId, stderr, offset, data } = entry.body.value;
  return { command: commandId, host, stderr, offset, data: data.toString("base64") };
}

function resultValues(host: string, entry: Entry): NewRecord["values"] | undefined {
  if (entry.body?.$case !== "result") return undefined;
  const { commandId, code, message, startedMs, endedMs, state } = entry.body.value;
  return { command: commandId, host, state, code, message: message.slice(0, MESSAGE_MAX_CHARACTERS), started: startedMs, ended: endedMs };
}
