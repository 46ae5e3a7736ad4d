import { errorText } from "../../../../common/errors.ts";
import {
  AGENT_COMMANDS_WAITING_MAX,
  COMMAND_END_GRACE_MS,
  COMMAND_ID_MAX_CHARACTERS,
  COMMAND_LINE_MAX_BYTES,
  COMMAND_PLACE_AGAIN_MS,
  COMMAND_PLACE_LATE_MS,
  COMMAND_REACH_MS,
} from "../../../../common/limits.ts";
import type { Command, CommandState, Entry } from "../../../../proto/gen/agent/v1/agent.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Unrestricted } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { entrySlices } from "../entry-slices.ts";
import { commandBody } from "../session/frames.ts";
import type { LiveSession } from "../session/live-session.ts";
import type { Presence } from "../session/presence.ts";
import type {
  CommandOutcome,
  CommandListener,
  DispatchOptions,
  EntrySource,
  HostCommand,
  PeerCall,
  Peers,
  PeerWatch,
  Target,
  Transport,
} from "../types.ts";
import { CommandListeners, keyOf } from "./listeners.ts";
import { CommandRecords } from "./records.ts";
import { CommandWait } from "./wait.ts";

export interface AgentCommandsDependencies {
  readonly runtime: Runtime;
  readonly objects: Unrestricted<"ingest" | "read" | "get">;
  readonly controllerId: string;
  readonly live: (tenant: string, host: string) => LiveSession | undefined;
  readonly presence: Pick<Presence, "holderOf">;
  /** Absent: there are no other controllers. */
  readonly peers?: Pick<Peers, "watch"> | undefined;
  /** Returns the principal by which the controller itself acts in a tenant. */
  readonly actAs: (tenant: string, traceparent: string) => Promise<Principal>;
  /** Returns true if some area has on record that the host was given the command. Absent: every command is accepted. */
  readonly given?: (tenant: string, host: string, commandId: string) => Promise<boolean>;
}

/**
 * Receives the entries `output` and `result` of agents. They are stored before they are acknowledged and then passed to
 * the waiting caller. Output for a caller of this controller is passed on as it arrives.
 */
export interface CommandEntries {
  /**
   * Idempotent. Stores entries in their order and ignores other kinds. Returns the ids of commands that the host was
   * not given; their entries are not stored.
   */
  accept(source: EntrySource, entries: readonly Entry[]): Promise<ReadonlySet<string>>;
}

/** Where a command is registered: in a session of this controller, or with the controller that holds the session. */
type Place =
  | { readonly kind: "here"; readonly epoch: number }
  /** `epoch` is `undefined` until the other controller has answered the call. */
  | { readonly kind: "there"; readonly controller: string; readonly call: PeerCall; epoch: number | undefined };

interface Running {
  readonly target: Target;
  readonly command: HostCommand;
  readonly options: DispatchOptions;
  readonly wait: CommandWait;
  place: Place | undefined;
  /** True if a session may have received the command. */
  sent: boolean;
  /** True after `COMMAND_REACH_MS`. By then an agent should have received the command. */
  late: boolean;
  /** True while this controller looks for another one that holds the session. */
  isLookedFor: boolean;
  stopTimers: () => void;
  stopAgain: (() => void) | undefined;
}

/** A command sent on behalf of another controller. */
interface Served {
  readonly watch: PeerWatch;
  readonly epoch: number;
  readonly listener: CommandListener;
  readonly digests: ReadonlySet<string>;
}

/**
 * Sends commands over agent sessions of this controller and of others. A sent command waits for its result until its
 * deadline, even if the session ends. In the next session it is sent again under the same id, and the agent answers
 * from its journal.
 */
export class AgentCommands implements Transport, CommandEntries {
  readonly #with: AgentCommandsDependencies;
  readonly #records: CommandRecords;
  readonly #running = new Map<string, Running>();
  readonly #listeners = new CommandListeners();
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

  /** A session of the host began here: sends the host's unanswered commands in it. */
  follow(tenant: string, host: string): void {
    for (const running of this.#running.values()) {
      if (running.target.tenant === tenant && running.target.host === host) this.#place(running);
    }
  }

  /** A session of the host ended here: its commands continue in its next session, on this or another controller. */
  left({ tenant, host }: { readonly tenant: string; readonly host: string }, epoch: number): void {
    for (const served of [...this.#served]) {
      const { watch, listener } = served;
      if (served.epoch === epoch && watch.tenant === tenant && watch.host === host) listener.sessionOver?.();
    }
    this.follow(tenant, host);
  }

  state(session: LiveSession, state: CommandState): void {
    const { tenant, host } = session.identity;
    for (const listener of this.#listeners.of(keyOf(tenant, host, state.commandId))) listener.state(state);
  }

  /** Returns true if the content belongs to a deployment that the host is working on. */
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

  async accept(source: EntrySource, entries: readonly Entry[]): Promise<ReadonlySet<string>> {
    const foreign = await this.#foreign(source, entries);
    const own = entries.filter((entry) => !foreign.has(commandOf(entry) ?? ""));
    const slices = entrySlices(source.tenant, this.#with.runtime.clock);
    for (const { body } of own) {
      if (body?.$case !== "output") continue;
      if (slices.isOverNow()) await slices.pause();
      this.#running.get(keyOf(source.tenant, source.host, body.value.commandId))?.wait.coming(body.value);
    }
    await this.#records.keep(source, own);
    // One commit stores entries of many hosts, so the work of all of them continues at once. It is done in slices.
    for (const { body } of own) {
      if (slices.isOverNow()) await slices.pause();
      if (body?.$case !== "output" && body?.$case !== "result") continue;
      for (const listener of this.#listeners.of(keyOf(source.tenant, source.host, body.value.commandId))) {
        if (body.$case === "output") listener.output(body.value);
        else listener.result(body.value);
      }
    }
    return foreign;
  }

  /** Ids of commands that the host was not given: no dispatch here waits for them, and no area has them on record. */
  async #foreign({ tenant, host }: EntrySource, entries: readonly Entry[]): Promise<ReadonlySet<string>> {
    const foreign = new Set<string>();
    const { given } = this.#with;
    if (!given) return foreign;
    for (const id of new Set(entries.map(commandOf))) {
      if (id === undefined || this.#listeners.has(keyOf(tenant, host, id))) continue;
      if (id.length > COMMAND_ID_MAX_CHARACTERS || !(await given(tenant, host, id))) foreign.add(id);
    }
    return foreign;
  }

  /**
   * Sends a command of another controller in the session of its host and reports its progress. Returns `undefined` if
   * no session is here.
   */
  serve(watch: PeerWatch, listener: CommandListener): (PeerCall & { readonly epoch: number }) | undefined {
    const { tenant, host, command } = watch;
    const session = this.#with.live(tenant, host);
    if (!session) return undefined;
    const key = keyOf(tenant, host, command.id);
    const files = command.body?.$case === "deploy" ? command.body.value.files : [];
    const served: Served = {
      watch,
      epoch: session.epoch,
      listener,
      digests: new Set(files.map((file) => file.digest)),
    };
    this.#served.add(served);
    this.#listeners.add(key, listener);
    session.send({ $case: "command", value: { ...command, epoch: session.epoch } });
    return {
      epoch: session.epoch,
      cancel: () => this.#cancelHere({ tenant, host, commandId: command.id }),
      end: () => {
        this.#served.delete(served);
        this.#listeners.remove(key, listener);
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
      sent: options.mayRun === true,
      late: false,
      isLookedFor: false,
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
    this.#listeners.add(key, wait);
    return running;
  }

  #over(key: string, running: Running): void {
    running.stopTimers();
    running.stopAgain?.();
    this.#running.delete(key);
    this.#listeners.remove(key, running.wait);
    this.#leave(running);
  }

  #refusal(
    command: HostCommand,
    options: DispatchOptions,
  ): { readonly state: "cancelled" | "failed"; readonly message: string } | undefined {
    if (options.signal?.aborted && !options.mayRun)
      return { state: "cancelled", message: "The command was cancelled before it was sent." };
    if (command.kind === "exec" && Buffer.byteLength(command.line) > COMMAND_LINE_MAX_BYTES) {
      return { state: "failed", message: `The command line is longer than ${COMMAND_LINE_MAX_BYTES} bytes.` };
    }
    if (this.#running.size > AGENT_COMMANDS_WAITING_MAX)
      return { state: "failed", message: "Too many commands wait for their results." };
    return undefined;
  }

  /**
   * Sends the command in the session of its host, here or on another controller, unless it was already sent in that
   * session. A cancelled command is sent with no time left, so a host that does not have it never starts it.
   */
  #place(running: Running): void {
    if (running.wait.over || (isCancelled(running) && !this.#mayHaveArrived(running))) return;
    const { tenant, host } = running.target;
    const session = this.#with.live(tenant, host);
    if (session) this.#placeHere(running, session);
    else if (!running.isLookedFor) void this.#placeElsewhere(running);
  }

  async #placeElsewhere(running: Running): Promise<void> {
    const { tenant, host } = running.target;
    const { presence, controllerId, runtime } = this.#with;
    running.isLookedFor = true;
    const holder = await presence.holderOf(tenant, host).catch((error: unknown) => {
      runtime.log.debug({ tenant, host, reason: errorText(error) }, "the session of a host is looked for again");
      return undefined;
    });
    running.isLookedFor = false;
    if (running.wait.over) return;
    // The session may have begun here in the meantime.
    const session = this.#with.live(tenant, host);
    if (session) this.#placeHere(running, session);
    else if (holder && holder.controller !== controllerId) this.#placeThere(running, holder);
    else this.#again(running);
  }

  #placeHere(running: Running, session: LiveSession): void {
    if (running.place?.kind === "here" && running.place.epoch === session.epoch) return;
    this.#leave(running);
    running.place = { kind: "here", epoch: session.epoch };
    running.sent = true;
    session.send({ $case: "command", value: this.#frame(running, session.epoch) });
    running.wait.catchUp();
    if (isCancelled(running)) this.#cancelled(running);
  }

  #placeThere(running: Running, holder: { readonly controller: string; readonly epoch: number }): void {
    const { place } = running;
    if (place?.kind === "there" && place.controller === holder.controller && (place.epoch ?? Infinity) >= holder.epoch)
      return;
    this.#leave(running);
    const { tenant, host } = running.target;
    // Ignores events of an earlier call.
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
          // The command may have been sent before the connection broke.
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
    if (isCancelled(running)) this.#cancelled(running);
    this.#place(running);
  }

  #moveOn(running: Running): void {
    running.place = undefined;
    this.#again(running);
  }

  #again(running: Running): void {
    if (running.late && !this.#mayHaveArrived(running)) return this.#unreached(running);
    const delayMs = running.late ? COMMAND_PLACE_LATE_MS : COMMAND_PLACE_AGAIN_MS;
    running.stopAgain ??= this.#with.runtime.clock.after(delayMs, () => {
      running.stopAgain = undefined;
      if (running.place?.kind !== "there") this.#place(running);
    });
  }

  #leave(running: Running): void {
    if (running.place?.kind === "there") running.place.call.end();
    running.place = undefined;
  }

  #frame(running: Running, epoch: number): Command {
    const { options, command, target, wait } = running;
    const sentMs = this.#with.runtime.clock.nowMs();
    return {
      id: options.commandId,
      epoch,
      deadlineMs: isCancelled(running) ? sentMs : wait.startedMs + options.timeoutMs,
      traceparent: target.traceparent,
      sentMs,
      body: commandBody(command),
    };
  }

  #cancelled(running: Running): void {
    const end = (): void => running.wait.finish({ state: "cancelled", message: "The command was cancelled." });
    if (!this.#mayHaveArrived(running)) return end();
    // A host that is away receives the cancel when it reconnects, if the deadline has not passed.
    if (this.#tellCancel(running)) this.#after(COMMAND_END_GRACE_MS, running, () => this.#isHeard(running) && end());
  }

  /** Returns true if the session that received the cancel still exists. */
  #isHeard({ place, target: { tenant, host } }: Running): boolean {
    return place?.kind === "here" ? this.#with.live(tenant, host)?.epoch === place.epoch : place?.epoch !== undefined;
  }

  #timedOut(running: Running): void {
    if (!this.#mayHaveArrived(running)) return this.#unreached(running);
    running.wait.ranOut(
      isCancelled(running)
        ? { state: "cancelled", message: "The command was cancelled; its host has not said how it ended." }
        : { state: "timeout", message: `The command did not end within ${running.options.timeoutMs} ms.` },
    );
    this.#endsWithinGrace(running, () => void running.wait.finishUnlessStored());
  }

  /**
   * Tells the agent to end the command. The agent answers when every process of the command is dead. Without an answer,
   * the command ends here after the grace period.
   */
  #endsWithinGrace(running: Running, end: () => void): void {
    const told = this.#tellCancel(running);
    this.#after(told ? COMMAND_END_GRACE_MS : 0, running, end);
  }

  #after(delayMs: number, running: Running, act: () => void): void {
    const stop = this.#with.runtime.clock.after(delayMs, act);
    const { stopTimers } = running;
    running.stopTimers = () => {
      stopTimers();
      stop();
    };
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

  /** Returns true if the cancel was sent to a holder of the command. */
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
}

function isCancelled({ options }: Running): boolean {
  return options.signal?.aborted === true;
}

function commandOf({ body }: Entry): string | undefined {
  return body?.$case === "output" || body?.$case === "result" ? body.value.commandId : undefined;
}
