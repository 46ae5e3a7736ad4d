import pLimit, { type LimitFunction } from "p-limit";
import { NOT_DEPLOYED } from "../../../../common/agent/deployments.ts";
import { AppError, errorText, isAppError } from "../../../../common/errors.ts";
import { COMMAND_LINE_MAX_BYTES, SSH_CONNECTIONS_MAX, SSH_ENDING_MS } from "../../../../common/limits.ts";
import { maskedOutputOf } from "../../../../common/masking.ts";
import type { Runtime } from "../../../runtime.ts";
import type { BlobStore } from "../../../store/blobs.ts";
import type {
  CommandOutcome,
  DispatchOptions,
  FinalState,
  ProxiedHost,
  HostCommand,
  OutputPiece,
  Target,
  Transport,
} from "../types.ts";
import { agentWay, type AgentWayDependencies } from "./agent-ways.ts";
import { SshConnection, type ScriptEnd, type SshAddress } from "./connection.ts";
import {
  checkedFiles,
  depotPlace,
  keepDepot,
  putDepot,
  removeDepot,
  revertDepot,
  workFolder,
  type DepotPlace,
} from "./depots.ts";
import type { PlacedDepot, SshJournal } from "./journal.ts";
import { SshJumps, type JumpWay } from "./jumps.ts";
import { type ScriptGifts, scriptOf } from "./shell.ts";

export interface SshTransportDependencies {
  readonly runtime: Runtime;
  /** Returns the address and the unsealed credentials of a host for one use. */
  readonly address: (target: Target) => Promise<SshAddress>;
  /**
   * Returns true if the host may have this key; stores the first key if the host is to be trusted on first use. Throws
   * `AppError("denied")` with the reason otherwise.
   */
  readonly checkKey: (target: Target, fingerprint: string) => Promise<boolean>;
  readonly blobs: (tenant: string) => Promise<BlobStore>;
  readonly journal: SshJournal;
  /** Opens a tunnel to a host behind a jump host that is reached by its agent: see `agentWay`. */
  readonly openTunnel: AgentWayDependencies["open"];
  readonly connectionsMax?: number;
}

interface Work {
  readonly target: Target;
  readonly command: HostCommand;
  readonly options: DispatchOptions;
  readonly signal: AbortSignal;
  /** Present for a host behind a jump host. */
  readonly way?: JumpWay;
}

type Ending = Pick<CommandOutcome, "state" | "message" | "code" | "signal">;

/** Runs commands over SSH on hosts without an agent. A command id is begun at most once. */
export class SshTransport implements Transport {
  readonly #with: SshTransportDependencies;
  readonly #limit: LimitFunction;
  readonly #jumps: SshJumps;
  readonly #running = new Map<string, Promise<CommandOutcome>>();
  readonly #changing = new Map<string, Promise<void>>();

  constructor(dependencies: SshTransportDependencies) {
    this.#with = dependencies;
    this.#limit = pLimit(dependencies.connectionsMax ?? SSH_CONNECTIONS_MAX);
    this.#jumps = new SshJumps({ ...dependencies, clock: dependencies.runtime.clock });
  }

  run(target: Target, command: HostCommand, options: DispatchOptions): Promise<CommandOutcome> {
    const key = `${target.tenant}/${target.host}/${options.commandId}`;
    const running =
      this.#running.get(key) ?? this.#once(target, command, options).finally(() => this.#running.delete(key));
    this.#running.set(key, running);
    return running;
  }

  async #once(target: Target, command: HostCommand, options: DispatchOptions): Promise<CommandOutcome> {
    const { clock } = this.#with.runtime;
    const startedMs = clock.nowMs();
    const finished = (ending: Ending): CommandOutcome => ({
      host: target.host,
      startedMs,
      endedMs: clock.nowMs(),
      ...ending,
    });
    try {
      const earlier = await this.#with.journal.begin(target, options.commandId);
      if (earlier) return earlier;
      const outcome = finished(await this.#timed({ target, command, options }));
      await this.#with.journal.finish(target, options.commandId, outcome);
      return outcome;
    } catch (error) {
      return finished(this.#failure(target, error));
    }
  }

  /** The outcome always comes at most `SSH_ENDING_MS` after the deadline. */
  async #timed(work: Omit<Work, "signal">): Promise<Ending> {
    const { options } = work;
    const over = new AbortController();
    const { clock } = this.#with.runtime;
    const reason = () => ending(options.signal?.aborted === true, options.timeoutMs);
    if (options.signal?.aborted) return reason();
    let begun = false;
    const cancelled = new Promise<Ending>((resolve) => {
      const stop = () => {
        over.abort();
        if (!begun) return resolve(reason());
        // The command ends when its processes are dead, which may take this long.
        clock.after(SSH_ENDING_MS, () => resolve(reason()));
      };
      const stopTimer = clock.after(options.timeoutMs, stop);
      options.signal?.addEventListener("abort", stop, { once: true, signal: over.signal });
      over.signal.addEventListener("abort", stopTimer, { once: true });
    });
    const done = this.#limit(() => {
      begun = true;
      return this.#connected({ ...work, signal: over.signal });
    }).catch((error: unknown) => this.#failure(work.target, error));
    const result = await Promise.race([done, cancelled]);
    const aborted = over.signal.aborted;
    over.abort();
    return aborted ? reason() : result;
  }

  async #connected(work: Work): Promise<Ending> {
    if (work.signal.aborted) return { state: "timeout", message: "" };
    const { behind } = work.target;
    if (!behind) return this.#reached(work);
    let way: JumpWay;
    try {
      way = await this.#way(work.target, { behind, signal: work.signal });
    } catch (error) {
      throw new Unreachable(errorText(error));
    }
    try {
      return await this.#reached({ ...work, way });
    } finally {
      way.release();
    }
  }

  #way(target: Target, by: { readonly behind: ProxiedHost; readonly signal: AbortSignal }): Promise<JumpWay> {
    const { runtime, openTunnel } = this.#with;
    return target.byAgent
      ? agentWay({ clock: runtime.clock, open: openTunnel }, target, by)
      : this.#jumps.way(target, by);
  }

  async #reached(work: Work): Promise<Ending> {
    const { command } = work;
    const prepared = prepare(command);
    const connection = await this.#connect(work);
    try {
      if (command.kind === "exec") return await this.#exec(connection, work, command);
      return await this.#alone(work, async () => {
        if (command.kind === "undeploy") return this.#undeploy(connection, work, command);
        return prepared ? this.#deploy(connection, work, { command, ...prepared }) : DONE;
      });
    } finally {
      connection.close();
    }
  }

  /** Allows one change of a host's depots at a time. */
  #alone(work: Work, change: () => Promise<Ending>): Promise<Ending> {
    const key = `${work.target.tenant}/${work.target.host}`;
    const turn = (this.#changing.get(key) ?? Promise.resolve()).then(change);
    const settled = turn.then(noop, noop).then(() => {
      if (this.#changing.get(key) === settled) this.#changing.delete(key);
    });
    this.#changing.set(key, settled);
    return turn;
  }

  async #connect({ target, command, signal, way }: Work): Promise<SshConnection> {
    const address = await this.#with.address(target).catch((error: unknown) => {
      throw new Unreachable(errorText(error));
    });
    requireLogin(command, address);
    try {
      return await SshConnection.connect(address, {
        clock: this.#with.runtime.clock,
        checkKey: (fingerprint) => this.#with.checkKey(target, fingerprint),
        signal,
        ...(way && { way }),
      });
    } catch (error) {
      throw new Unreachable(errorText(error));
    }
  }

  async #exec(connection: SshConnection, work: Work, command: HostCommand & { kind: "exec" }): Promise<Ending> {
    const placed = command.depot ? await this.#with.journal.depotOf(work.target, command.depot) : undefined;
    if (command.depot && !placed) throw new AppError("not_found", `The depot ${command.depot} is not on this host.`);
    const script = scriptOf(command.line, placed && workFolder(placed));
    const { environment = {}, input } = command;
    return this.#script(connection, work, { script, environment, ...(input && { input }) });
  }

  /** Deploys the depot. If its command fails, is cancelled or runs out of time, the former depot is restored. */
  async #deploy(
    connection: SshConnection,
    work: Work,
    depot: { readonly command: HostCommand & { kind: "deploy" } } & Prepared,
  ): Promise<Ending> {
    const { target, options, signal } = work;
    const { command, files, place } = depot;
    const { journal } = this.#with;
    const before = await journal.depotOf(target, command.name);
    const blobs = await this.#with.blobs(target.tenant);
    const over = { place, before };
    await putDepot(connection, blobs, { ...over, files, attempt: attemptOf(options.commandId), signal });
    const end = command.command
      ? await this.#script(connection, work, {
          script: scriptOf(command.command, workFolder(place)),
          environment: command.environment ?? {},
        })
      : DONE;
    if (end.state === "ok" && !signal.aborted) {
      const placed = { name: command.name, version: command.version, ...place };
      await this.#keep(connection, work, { placed, before });
    } else await revertDepot(connection, over);
    return end;
  }

  /** If files of the former depot cannot be removed, that depot is restored, and the error is thrown. */
  async #keep(connection: SshConnection, { target, signal }: Work, { placed, before }: Kept): Promise<void> {
    const { journal } = this.#with;
    await journal.put(target, placed);
    try {
      await keepDepot(connection, { place: placed, before }, signal);
    } catch (error) {
      await revertDepot(connection, { place: placed, before });
      await (before ? journal.put(target, before) : journal.take(target, placed.name));
      throw error;
    }
  }

  /** Removes the depot. Does nothing if the host has none, or another version, or has it at another place. */
  async #undeploy(connection: SshConnection, work: Work, command: HostCommand & { kind: "undeploy" }): Promise<Ending> {
    const { target, signal } = work;
    const placed = await this.#with.journal.depotOf(target, command.name);
    if (!placed || !isMeant(placed, command)) return { ...DONE, message: NOT_DEPLOYED };
    if (command.command) {
      const end = await this.#script(connection, work, { script: scriptOf(command.command, workFolder(placed)) });
      if (end.state !== "ok") return end;
    }
    await removeDepot(connection, placed, signal);
    await this.#with.journal.take(target, command.name);
    return DONE;
  }

  async #script(connection: SshConnection, { options, signal, way }: Work, of: Script): Promise<Ending> {
    const { script, environment = {}, ...gifts } = of;
    const masked = maskedOutputOf(environment);
    const pass = (data: Uint8Array, stderr: boolean): void => {
      // No output is passed on once the state is final.
      if (!signal.aborted && data.length > 0) options.onOutput?.({ stderr, data });
    };
    const onOutput = ({ data, stderr }: OutputPiece): void => pass(masked?.take(data, stderr) ?? data, stderr);
    const end = await connection.run(script, { ...gifts, signal, environment, onOutput });
    for (const stderr of masked ? [false, true] : []) pass(masked?.rest(stderr) ?? EMPTY, stderr);
    return endingOf(end, way);
  }

  #failure(target: Target, error: unknown): Ending {
    if (error instanceof Unreachable) return { state: "unreachable", message: error.message };
    if (isAppError(error)) return { state: "failed", message: error.message };
    this.#with.runtime.log.error({ tenant: target.tenant, host: target.host, err: error }, "a command over SSH failed");
    return { state: "failed", message: "The controller failed; its log has the details." };
  }
}

interface Kept {
  readonly placed: PlacedDepot;
  readonly before: PlacedDepot | undefined;
}

interface Script extends ScriptGifts {
  readonly script: string;
}

function isMeant(placed: PlacedDepot, { name, version, remotePath }: HostCommand & { kind: "undeploy" }): boolean {
  const isVersion = version === "" || placed.version === version;
  return isVersion && (!remotePath || placed.remotePath === depotPlace(name, remotePath).remotePath);
}

class Unreachable extends Error {}

const EMPTY = new Uint8Array();

const noop = (): void => undefined;

interface Prepared {
  readonly files: ReturnType<typeof checkedFiles>;
  readonly place: DepotPlace;
}

const DONE: Ending = { state: "ok", message: "", code: 0 };

/** Rejects commands that must not reach a host, before a connection is opened. */
function prepare(command: HostCommand): Prepared | undefined {
  if (command.kind === "exec") {
    if (Buffer.byteLength(command.line) <= COMMAND_LINE_MAX_BYTES) return undefined;
    throw new AppError("too_large", `The command line is longer than ${COMMAND_LINE_MAX_BYTES} bytes.`);
  }
  const place = depotPlace(command.name, command.remotePath);
  return { place, files: command.kind === "deploy" ? checkedFiles(command) : [] };
}

/** SSH has the user of the login. A command for another one is not run, as it would have other rights. */
function requireLogin(command: HostCommand, { username }: SshAddress): void {
  if (command.kind !== "exec" || command.user === undefined || command.user === username) return;
  throw new AppError(
    "unsupported",
    `Over SSH, commands run as ${username}, the user of the login, and not as ${command.user}.`,
  );
}

function attemptOf(commandId: string): string {
  return commandId.replace(/[^A-Za-z0-9]/g, "").slice(-26) || "0";
}

function ending(cancelled: boolean, timeoutMs: number): Ending {
  const state: FinalState = cancelled ? "cancelled" : "timeout";
  return {
    state,
    message: cancelled ? "The command was cancelled." : `The command did not end within ${timeoutMs} ms.`,
  };
}

function endingOf(end: ScriptEnd, way: JumpWay | undefined): Ending {
  if (end.code === 0) return { state: "ok", message: "", code: 0 };
  if (end.code !== undefined)
    return { state: "failed", message: `The command ended with code ${end.code}.`, code: end.code };
  if (end.signal === undefined) return { state: "failed", message: `${lostOf(way)} was lost while the command ran.` };
  return { state: "failed", message: `The command was ended by ${end.signal}.`, signal: end.signal };
}

function lostOf(way: JumpWay | undefined): string {
  if (!way) return "The connection";
  return way.isLost()
    ? `The connection to the jump host ${way.proxy}`
    : `The connection through the jump host ${way.proxy}`;
}
