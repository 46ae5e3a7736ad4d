import {
  AGENT_COMMANDS_WAITING_MAX,
  COMMAND_CANCEL_GRACE_MS,
  COMMAND_LINE_MAX_BYTES,
  COMMAND_PLACE_AGAIN_MS,
  COMMAND_REACH_MS,
} from "../../../../common/limits.ts";
import type { Command, CommandState, Entry } from "../../../../proto/gen/agent/v1/agent.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Objects } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { commandBody } from "../session/frames.ts";
import type { LiveSession } from "../session/live-session.ts";
import type { Presence } from "../session/presence.ts";
import type {
  CommandOutcome,
  CommandTeller,
  DispatchOptions,
  EntrySource,
  HostCommand,
  PeerCall,
  Peers,
  PeerWatch,
  Target,
  Transport,
} from "../types.ts";
import { CommandRecords } from "./records.ts";
import { CommandWait } from "./wait.ts";

export interface AgentCommandsDependencies {
  readonly runtime: Runtime;
  readonly objects: Pick<Objects, "ingest" | "read" | "get">;
  readonly controllerId: string;
  readonly live: (tenant: string, host: string) => LiveSession | undefined;
  readonly presence: Pick<Presence, "holderOf">;
  /** Absent: there are no other controllers. */
  readonly peers?: Pick<Peers, "watch"> | undefined;
  /** The controller acting for a tenant by itself. */
  readonly actAs: (tenant: string, traceparent: string) => Promise<Principal>;
}

/** Where the entries `output` and `result` of agents go: kept before they are acknowledged, then told to whoever waits. */
export interface CommandEntries {
  /** Idempotent. Takes the entries in their order and leaves out those of other kinds. */
  accept(source: EntrySource, entries: readonly Entry[]): Promise<void>;
}

/** Where a command is registered: in a session of this controller, or with the controller that holds the session. */
type Place =
  | { readonly kind: "here"; readonly epoch: number }
  /** Without epoch: asked for, not answered yet. */
  | { readonly kind: "there"; readonly controller: string; readonly call: PeerCall; epoch: number | undefined };

interface Running {
  readonly target: Target;
  readonly command: HostCommand;
  readonly options: DispatchOptions;
  readonly wait: CommandWait;
  place: Place | undefined;
  /** Some session may have got it. */
  sent: boolean;
  /** Somebody should have taken it by now. */
  late: boolean;
  stopTimers: () => void;
  stopAgain: (() => void) | undefined;
}

/** A command sent for another controller. */
interface Served {
  readonly watch: PeerWatch;
  readonly digests: ReadonlySet<string>;
}

/**
 * Commands over agent sessions, whichever controller holds them. A command that was sent waits for its result until its deadline,
 * whatever happens to the session: with the next one it is sent again under the same id, and the agent answers from its journal.
 */
export class AgentCommands implements Transport, CommandEntries {
  readonly #with: AgentCommandsDependencies;
  readonly #records: CommandRecords;
  readonly #running = new Map<string, Running>();
  readonly #tellers = new Map<string, Set<CommandTeller>>();
  readonly #served = new Set<Served>();

  constructor(dependencies: AgentCommandsDependencies) {
    this.#with = dependencies;
    this.#records = new CommandRecords(dependencies);
  }

  run(target: Target, command: HostCommand, options: DispatchOptions): Promise<CommandOutcome> {
    const key = keyOf(target.tenant, target.host, options.commandId);
    const known = this.#running.get(key);
    if (known) return known.wait.outcome;
    const running = this.#begin(key, target, { command, options });
    const refusal = this.#refusal(command, options);
    if (refusal !== undefined) running.wait.finish(refusal);
    else this.#place(running);
    return running.wait.outcome;
  }

  /** A session of the host began, here or with another controller: whatever it still owes an answer goes there. */
  follow(tenant: string, host: string): void {
    for (const running of this.#running.values()) {
      if (running.target.tenant === tenant && running.target.host === host) this.#place(running);
    }
  }

  state(session: LiveSession, state: CommandState): void {
    const { tenant, host } = session.identity;
    for (const teller of this.#tellersOf(tenant, host, state.commandId)) teller.state(state);
  }

  /** Whether the content belongs to a deployment the host is working on. */
  refersTo(tenant: string, host: string, digest: string): boolean {
    for (const { target, command } of this.#running.values()) {
      const mine = target.tenant === tenant && target.host === host;
      if (mine && command.kind === "deploy" && command.files.some((file) => file.digest === digest)) return true;
    }
    for (const { watch, digests } of this.#served) {
      if (watch.tenant === tenant && watch.host === host && digests.has(digest)) return true;
    }
    return false;
  }

  async accept(source: EntrySource, entries: readonly Entry[]): Promise<void> {
    await this.#records.keep(source, entries);
    for (const { body } of entries) {
      if (body?.$case !== "output" && body?.$case !== "result") continue;
      for (const teller of this.#tellersOf(source.tenant, source.host, body.value.commandId)) {
        if (body.$case === "output") teller.output(body.value);
        else teller.result(body.value);
      }
    }
  }

  /** Sends a command of another controller in the session of its host and tells what comes of it; `undefined` when no session is here. */
  serve(watch: PeerWatch, teller: CommandTeller): (PeerCall & { readonly epoch: number }) | undefined {
    const { tenant, host, command } = watch;
    const session = this.#with.live(tenant, host);
    if (!session) return undefined;
    const key = keyOf(tenant, host, command.id);
    const files = command.body?.$case === "deploy" ? command.body.value.files : [];
    const served: Served = { watch, digests: new Set(files.map((file) => file.digest)) };
    this.#served.add(served);
    this.#listen(key, teller);
    session.send({ $case: "command", value: { ...command, epoch: session.epoch } });
    return {
      epoch: session.epoch,
      cancel: () => this.#cancelHere({ tenant, host, commandId: command.id }),
      end: () => {
        this.#served.delete(served);
        this.#unlisten(key, teller);
      },
    };
  }

  #begin(
    key: string,
    target: Target,
    work: { readonly command: HostCommand; readonly options: DispatchOptions },
  ): Running {
    const { options } = work;
    const { runtime } = this.#with;
    const over = () => this.#over(key, running);
    const wait = new CommandWait({ target, options, runtime, records: this.#records, over });
    const running: Running = {
      target,
      ...work,
      wait,
      place: undefined,
      sent: false,
      late: false,
      stopTimers: () => undefined,
      stopAgain: undefined,
    };
    const cancel = () => this.#cancelled(running);
    options.signal?.addEventListener("abort", cancel, { once: true });
    const stops = [
      runtime.clock.after(options.timeoutMs, () => this.#timedOut(running)),
      runtime.clock.after(COMMAND_REACH_MS, () => {
        running.late = true;
        this.#unreached(running);
      }),
      () => options.signal?.removeEventListener("abort", cancel),
    ];
    running.stopTimers = () => stops.forEach((stop) => stop());
    this.#running.set(key, running);
    this.#listen(key, wait);
    return running;
  }

  #over(key: string, running: Running): void {
    running.stopTimers();
    running.stopAgain?.();
    this.#running.delete(key);
    this.#unlisten(key, running.wait);
    this.#leave(running);
  }

  #refusal(
    command: HostCommand,
    options: DispatchOptions,
  ): { readonly state: "cancelled" | "failed"; readonly message: string } | undefined {
    if (options.signal?.aborted)
      return { state: "cancelled", message: "The command was cancelled before it was sent." };
    if (command.kind === "exec" && Buffer.byteLength(command.line) > COMMAND_LINE_MAX_BYTES) {
      return { state: "failed", message: `The command line is longer than ${COMMAND_LINE_MAX_BYTES} bytes.` };
    }
    if (this.#running.size > AGENT_COMMANDS_WAITING_MAX)
      return { state: "failed", message: "Too many commands wait for their results." };
    return undefined;
  }

  /** Registers the command where the session of its host is, if it is not there already. */
  #place(running: Running): void {
    if (running.wait.over || running.options.signal?.aborted) return;
    const { tenant, host } = running.target;
    const session = this.#with.live(tenant, host);
    if (session) return this.#placeHere(running, session);
    const holder = this.#with.presence.holderOf(tenant, host);
    if (holder && holder.controller !== this.#with.controllerId) this.#placeThere(running, holder);
    else if (running.place?.kind !== "here") this.#again(running);
  }

  #placeHere(running: Running, session: LiveSession): void {
    if (running.place?.kind === "here" && running.place.epoch === session.epoch) return;
    this.#leave(running);
    running.place = { kind: "here", epoch: session.epoch };
    running.sent = true;
    session.send({ $case: "command", value: this.#frame(running, session.epoch) });
    running.wait.catchUp();
  }

  #placeThere(running: Running, holder: { readonly controller: string; readonly epoch: number }): void {
    const { place } = running;
    if (place?.kind === "there" && place.controller === holder.controller && (place.epoch ?? Infinity) >= holder.epoch)
      return;
    this.#leave(running);
    const { tenant, host } = running.target;
    // Events of a call that was left are not heard.
    const mine = (act: (there: Place & { kind: "there" }) => void) => () =>
      running.place?.kind === "there" && running.place.call === call && act(running.place);
    const call: PeerCall | undefined = this.#with.peers?.watch(
      holder.controller,
      { tenant, host, command: this.#frame(running, 0) },
      {
        output: (output) => running.wait.output(output),
        result: (result) => running.wait.result(result),
        state: (state) => running.wait.state(state),
        lost: () => running.wait.lost(),
        watching: (epoch) => mine((there) => this.#registered(running, there, epoch))(),
        notHeld: mine(() => this.#moveOn(running)),
        gone: mine((there) => {
          // It may have been sent before the link broke.
          if (there.epoch === undefined) running.sent = true;
          this.#moveOn(running);
        }),
      },
    );
    if (!call) return this.#again(running);
    running.place = { kind: "there", controller: holder.controller, call, epoch: undefined };
  }

  #registered(running: Running, there: Place & { kind: "there" }, epoch: number): void {
    there.epoch = epoch;
    running.sent = true;
    running.wait.catchUp();
    this.#place(running);
  }

  #moveOn(running: Running): void {
    running.place = undefined;
    this.#again(running);
  }

  #again(running: Running): void {
    if (running.late && !this.#mayHaveArrived(running)) return this.#unreached(running);
    running.stopAgain ??= this.#with.runtime.clock.after(COMMAND_PLACE_AGAIN_MS, () => {
      running.stopAgain = undefined;
      if (!running.place) this.#place(running);
    });
  }

  #leave(running: Running): void {
    if (running.place?.kind === "there") running.place.call.end();
    running.place = undefined;
  }

  #frame({ options, command, target, wait }: Running, epoch: number): Command {
    return {
      id: options.commandId,
      epoch,
      deadlineMs: wait.startedMs + options.timeoutMs,
      traceparent: target.traceparent,
      sentMs: this.#with.runtime.clock.nowMs(),
      body: commandBody(command),
    };
  }

  #cancelled(running: Running): void {
    const told = this.#tellCancel(running);
    const stop = this.#with.runtime.clock.after(told ? COMMAND_CANCEL_GRACE_MS : 0, () =>
      running.wait.finish({ state: "cancelled", message: "The command was cancelled." }),
    );
    const { stopTimers } = running;
    running.stopTimers = () => {
      stopTimers();
      stop();
    };
  }

  #timedOut(running: Running): void {
    if (!this.#mayHaveArrived(running)) return this.#unreached(running);
    this.#tellCancel(running);
    void running.wait.finishUnlessStored({
      state: "timeout",
      message: `The command did not end within ${running.options.timeoutMs} ms.`,
    });
  }

  #unreached(running: Running): void {
    if (this.#mayHaveArrived(running)) return;
    running.wait.finish({
      state: "unreachable",
      message: `No controller holds a session of ${running.target.host}: nothing was sent.`,
    });
  }

  #mayHaveArrived({ sent, place }: Running): boolean {
    return sent || place?.kind === "there";
  }

  /** Whether there is somebody to tell. */
  #tellCancel({ place, target, options }: Running): boolean {
    if (place?.kind === "there") {
      place.call.cancel();
      return true;
    }
    return this.#cancelHere({ ...target, commandId: options.commandId });
  }

  #cancelHere({
    tenant,
    host,
    commandId,
  }: {
    readonly tenant: string;
    readonly host: string;
    readonly commandId: string;
  }): boolean {
    const session = this.#with.live(tenant, host);
    session?.send({ $case: "cancel", value: { commandId, epoch: session.epoch } });
    return session !== undefined;
  }

  #tellersOf(tenant: string, host: string, commandId: string): readonly CommandTeller[] {
    return [...(this.#tellers.get(keyOf(tenant, host, commandId)) ?? [])];
  }

  #listen(key: string, teller: CommandTeller): void {
    const tellers = this.#tellers.get(key) ?? new Set();
    this.#tellers.set(key, tellers.add(teller));
  }

  #unlisten(key: string, teller: CommandTeller): void {
    const tellers = this.#tellers.get(key);
    tellers?.delete(teller);
    if (tellers?.size === 0) this.#tellers.delete(key);
  }
}

function keyOf(tenant: string, host: string, commandId: string): string {
  return `${tenant}/${host}/${commandId}`;
}
