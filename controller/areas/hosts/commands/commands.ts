import {
  AGENT_COMMANDS_WAITING_MAX,
  COMMAND_ID_MAX_CHARACTERS,
  COMMAND_LINE_MAX_BYTES,
  COMMAND_REACH_MS,
} from "../../../../common/limits.ts";
import type { CommandState, Entry } from "../../../../proto/gen/agent/v1/agent.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Unrestricted } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { entrySlices } from "../entry-slices.ts";
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
import { CommandEnding } from "./ending.ts";
import { CommandPlacing } from "./placing.ts";
import { CommandRecords } from "./records.ts";
import type { Running } from "./running.ts";
import { ServedCommands } from "./served.ts";
import { isUnstored } from "./unstored.ts";
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
  readonly #ending: CommandEnding;
  readonly #placing: CommandPlacing;
  readonly #served: ServedCommands;

  constructor(dependencies: AgentCommandsDependencies) {
    this.#with = dependencies;
    this.#records = new CommandRecords(dependencies);
    const ending = new CommandEnding(dependencies);
    this.#ending = ending;
    this.#placing = new CommandPlacing(dependencies, ending);
    this.#served = new ServedCommands({
      live: dependencies.live,
      listeners: this.#listeners,
      cancel: (of) => ending.cancelHere(of),
    });
  }

  run(target: Target, command: HostCommand, options: DispatchOptions): Promise<CommandOutcome> {
    const key = keyOf(target.tenant, target.host, options.commandId);
    const known = this.#running.get(key);
    if (known) return known.wait.outcome;
    const running = this.#begin(key, target, { command, options });
    const refusal = this.#refusal(command, options);
    if (refusal !== undefined) running.wait.finish(refusal);
    else this.#placing.place(running);
    return running.wait.outcome;
  }

  /** A session of the host began here: sends the host's unanswered commands in it. */
  follow(tenant: string, host: string): void {
    for (const running of this.#running.values()) {
      if (running.target.tenant === tenant && running.target.host === host) this.#placing.place(running);
    }
  }

  /** A session of the host ended here: its commands continue in its next session, on this or another controller. */
  left({ tenant, host }: { readonly tenant: string; readonly host: string }, epoch: number): void {
    this.#served.left({ tenant, host }, epoch);
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
    return this.#served.refersTo(tenant, host, digest);
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
    await this.#records.keep(
      source,
      own.filter((entry) => !isUnstored(commandOf(entry) ?? "")),
    );
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
      if (id === undefined || isUnstored(id) || this.#listeners.has(keyOf(tenant, host, id))) continue;
      if (id.length > COMMAND_ID_MAX_CHARACTERS || !(await given(tenant, host, id))) foreign.add(id);
    }
    return foreign;
  }

  /**
   * Sends a command of another controller in the session of its host and reports its progress. Returns `undefined` if
   * no session is here.
   */
  serve(watch: PeerWatch, listener: CommandListener): (PeerCall & { readonly epoch: number }) | undefined {
    return this.#served.serve(watch, listener);
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
    const cancel = () => this.#ending.cancelled(running);
    options.signal?.addEventListener("abort", cancel, { once: true });
    const stops = [
      runtime.clock.after(options.timeoutMs, () => this.#ending.timedOut(running)),
      runtime.clock.after(COMMAND_REACH_MS, () => {
        running.late = true;
        this.#ending.unreached(running);
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
    this.#placing.leave(running);
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
}

function commandOf({ body }: Entry): string | undefined {
  return body?.$case === "output" || body?.$case === "result" ? body.value.commandId : undefined;
}
