import type { Duplex } from "node:stream";
import type {
  AgentFrame,
  Ask,
  Batch,
  Command,
  CommandOutput,
  CommandResult,
  CommandState,
  ControllerFrame,
  Told,
} from "../../../proto/gen/agent/v1/agent.ts";
import type { Principal } from "../permissions/index.ts";

/** Final states of a target. Every target of every action reaches one, exactly once, by its deadline. */
export type FinalState = "ok" | "failed" | "timeout" | "unreachable" | "cancelled" | "expired";

export interface CommandOutcome {
  readonly host: string;
  readonly state: FinalState;
  /** Exit code if the process exited by itself. */
  readonly code?: number;
  /** Name of the signal that ended the process, e.g. `SIGKILL`. Absent: none did, or the host does not report it. */
  readonly signal?: string;
  /** Process id on the host. Absent: no process was started, or the host does not report it. */
  readonly pid?: number;
  /** Bytes of output and error output that the host did not send because there were too many. Absent: none. */
  readonly outDropped?: number;
  readonly errDropped?: number;
  /** Reason for users if it failed; empty on success. */
  readonly message: string;
  readonly startedMs: number;
  readonly endedMs: number;
}

/** One command for one host, the same for both transports. */
export type HostCommand =
  | {
      readonly kind: "exec";
      readonly line: string;
      readonly environment?: Readonly<Record<string, string>>;
      readonly depot?: string;
      /** User of the host who runs the command. Absent: the user of the agent, or of the SSH login. */
      readonly user?: string;
      /** Bytes that the command reads from its standard input. Absent: it is empty. */
      readonly input?: Uint8Array;
    }
  | ({ readonly kind: "deploy" } & DepotToDeploy)
  | {
      readonly kind: "undeploy";
      readonly name: string;
      readonly version: string;
      readonly command?: string;
      readonly remotePath?: string;
    };

export interface DepotToDeploy {
  readonly name: string;
  readonly version: string;
  readonly files: readonly DepotFile[];
  /** Command line to run in the depot's folder once the depot is in place. */
  readonly command?: string;
  /** Variables of the command. They are not stored. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Absolute folder on the host; absent: the agent's own, or `odp/depots` in the SSH user's home. */
  readonly remotePath?: string;
}

export interface DepotFile {
  /** Relative, normalised, inside the depot. */
  readonly path: string;
  readonly digest: string;
  readonly size: number;
  readonly executable: boolean;
}

export interface DispatchOptions {
  /** Timeout: afterwards the target's state is final, `timeout` if there is no other. */
  readonly timeoutMs: number;
  /** Repeating with the same id never runs it twice. */
  readonly commandId: string;
  /** Called with the output in order, every byte once. */
  readonly onOutput?: (piece: OutputPiece) => void;
  /**
   * Cancels the command: the host gets the cancel as soon as it can be reached. A host that has not received the
   * command never runs it.
   */
  readonly signal?: AbortSignal;
  /**
   * True if another controller may have sent the command. Then the host gets the cancel even if `signal` has already
   * fired.
   */
  readonly mayRun?: true;
}

export interface OutputPiece {
  readonly stderr: boolean;
  readonly data: Uint8Array;
}

/** The interface between an action and the way it reaches a host: agent session or SSH. */
export interface Transport {
  /** Never throws for a failure on the host; the outcome reports it. */
  run(target: Target, command: HostCommand, options: DispatchOptions): Promise<CommandOutcome>;
}

export interface Target {
  readonly tenant: string;
  readonly host: string;
  readonly traceparent: string;
  /** Absent: the host has a record with its own address. */
  readonly behind?: ProxiedHost;
  /** True if the jump host is reached by its agent. */
  readonly byAgent?: boolean;
}

/** A host reached over SSH from a jump host. It has no record; its credentials are here. */
export interface ProxiedHost {
  /** Name or address as the jump host knows it. */
  readonly host: string;
  /** The jump host. It has a record with SSH credentials, or an agent. */
  readonly proxy: string;
  /** Group of type proxy that declares this host. */
  readonly group: string;
  readonly port: number;
  readonly username: string;
  /** A password, or a private key in PEM. */
  readonly secret: string;
  /** Expected fingerprint of the host's key; empty: none is on record. */
  readonly sshkey: string;
  /** Records the first fingerprint that the host shows. Throws if another one is on record by now. */
  readonly noteKey: (fingerprint: string) => Promise<void>;
}

/** A place to which the agent of a jump host connects. */
export interface TunnelPlace {
  readonly tenant: string;
  /** The jump host that runs the agent. */
  readonly host: string;
  /** Group of type proxy that names the place behind that host. */
  readonly group: string;
  /** Name or address as the jump host knows it. */
  readonly address: string;
  readonly port: number;
}

/** Reason why an open tunnel ended. */
export class TunnelBroken extends Error {
  /** True if the way to the place was lost. False if the place itself closed the connection. */
  readonly wayLost: boolean;

  constructor(message: string, wayLost: boolean) {
    super(message);
    this.wayLost = wayLost;
  }
}

/** Source of the policies that a host's agent must run. Implemented by the area that owns policies. */
export interface DesiredStateSource {
  desired(
    tenant: string,
    host: string,
  ): Promise<{ readonly revision: number; readonly policies: readonly DesiredPolicy[] }>;
}

/**
 * The way in which a host runs policies. `agent`: an agent enrolled for it, also while it is away. `ssh`: it has no agent,
 * and credentials for SSH. `none`: neither.
 */
export type WayTo = "agent" | "ssh" | "none";

/** The agent of a host and its confs, as the controller knows them. */
export interface AgentState {
  /** True once an agent enrolled for the host. */
  readonly hasAgent: boolean;
  readonly isOnline: boolean;
  /** State of each policy as the agent reported it: `running`, `wanted`, or `failed: ` and the reason. */
  readonly policies: Readonly<Record<string, string>>;
  /** SHA-256 of the conf that the agent reported as in place, by policy. */
  readonly confs: Readonly<Record<string, string>>;
}

/** The policies of a host as its agent, or the controller that runs them over SSH, reported them last. */
export interface PolicyReport extends Pick<AgentState, "isOnline" | "policies"> {
  readonly host: string;
  readonly way: WayTo;
  /** Since when the host is online or offline; absent: its agent never connected. */
  readonly statusSinceMs: number | undefined;
  /** Since when each policy has its state. */
  readonly sinceMs: Readonly<Record<string, number>>;
  /** Usage of the daemons that run, by policy. */
  readonly usage: Readonly<Record<string, ProcessUsage>>;
}

/** Usage of the processes of a program. */
export interface ProcessUsage {
  /** Percent of one processor. Absent: not known yet. */
  readonly cpu?: number;
  /** Bytes. */
  readonly memory: number;
}

export interface DesiredPolicy {
  readonly name: string;
  readonly revision: number;
  /** JSON of a PolicySpec. */
  readonly spec: string;
  readonly depot?: DepotToDeploy;
  /** Bytes of `<name>.conf` beside the policy's working files. Absent: there is none. */
  readonly conf?: Uint8Array;
}

/** Receives everything that agents send. */
export interface EntrySink {
  /** A sequence of the stream up to which everything is stored; more may be stored. 0 if unknown. */
  acknowledged(source: EntrySource): Promise<number>;
  /** Returns the rule digests and the time to which the agent pins new batches. */
  told(source: EntrySource, ask: Ask): Promise<Told>;
  /**
   * Resolves when everything in these batches is stored. Idempotent: the same batches create the same rows, also when
   * several controllers take them at once. An error whose details have the reason `PIN_REFUSED` means that the agent
   * has to pin them again.
   */
  accept(source: EntrySource, batches: readonly Batch[]): Promise<void>;
}

export const PIN_REFUSED = "pin_refused";

export interface EntrySource {
  readonly tenant: string;
  readonly host: string;
  readonly streamId: string;
}

/** Identity of an agent, from its certificate alone. */
export interface AgentIdentity {
  readonly tenant: string;
  readonly host: string;
  /** Serial number of the certificate, hexadecimal. */
  readonly serial: string;
}

/** Reason for the end of a session, sent to its agent. */
export interface SessionEnd {
  readonly code: string;
  readonly message: string;
  /** True if the pinned values of the agent cannot be used and it has to ask for new ones. */
  readonly askAgain?: boolean;
}

/** The network side of one session, implemented by `grpc/`. */
export interface AgentChannel {
  send(frame: ControllerFrame): void;
  /** Ends the stream. With a reason, the agent is informed first. */
  close(reason?: SessionEnd): void;
}

export interface AgentSession {
  readonly epoch: number;
  receive(frame: AgentFrame): Promise<void>;
  /** Call when the connection is closed. */
  ended(): Promise<void>;
}

/** Receives the reports about a command after they are stored. A report may come twice or not at all. */
export interface CommandListener {
  output(output: CommandOutput): void;
  result(result: CommandResult): void;
  state(state: CommandState): void;
  /** Some reports were lost. */
  lost(): void;
  /** The session that received the command is over; no more reports follow. */
  sessionOver?(): void;
}

/** A command for a session that another controller holds. */
export interface PeerWatch {
  readonly tenant: string;
  readonly host: string;
  /** The command with epoch 0. Its times are by the clock of the calling controller. */
  readonly command: Command;
}

export interface PeerWatcher extends CommandListener {
  /** The command was sent in the session of that epoch. Everything stored from now on is reported. */
  watching(epoch: number): void;
  /**
   * That controller does not hold the session, or no longer holds it. No more reports follow. If `watching` was not
   * called before, nothing was sent to the host.
   */
  notHeld(): void;
  /** The connection broke; no more reports follow. */
  gone(): void;
}

export interface PeerCall {
  /** Tells the agent to end the command. */
  cancel(): void;
  /** Call when the caller no longer waits. */
  end(): void;
}

/** The running controllers, given by `areas/cluster`. */
export interface Controllers {
  /** Id of this controller. */
  readonly own: string;
  all(): readonly { readonly id: string }[];
  has(id: string): boolean;
  /** Call the result to stop. */
  onChange(listener: () => void): () => void;
}

/** Calls to the other controllers, given by `grpc/`. */
export interface Peers {
  /**
   * Returns `undefined` if that controller cannot be reached now; nothing was sent then. The watcher is never called
   * before this returns.
   */
  watch(controller: string, watch: PeerWatch, watcher: PeerWatcher): PeerCall | undefined;
  /**
   * Opens a tunnel over an agent whose session that controller holds. Throws an `AppError` with the reason if it fails.
   */
  tunnel(controller: string, place: TunnelPlace, signal: AbortSignal): Promise<Duplex>;
  /**
   * Tells that controller that the desired state of these hosts changed. It holds their sessions. The message may be
   * lost.
   */
  refresh(controller: string, tenant: string, hosts: readonly string[]): void;
}

/** Members of a host's record that say how its external agent is run. */
export interface HostSettings {
  readonly isextagent: number;
  readonly iszabbix: number;
  /** Without secrets. */
  readonly config: Readonly<Record<string, string>>;
}

/** Hosts that have credentials for SSH and no agent. The controller does there what an agent does elsewhere. */
export interface HostsOverSsh {
  /** These hosts, with the states of policies on the record of each. */
  all(tenant: string): Promise<ReadonlyMap<string, Readonly<Record<string, string>>>>;
  isOverSsh(tenant: string, host: string): Promise<boolean>;
  /** As `Transport.run`. */
  run(
    tenant: string,
    host: string,
    command: HostCommand & { readonly kind: "exec" },
    options: DispatchOptions,
  ): Promise<CommandOutcome>;
  /** Version of the depot that was deployed to the host over SSH; `undefined`: none. */
  depotVersion(tenant: string, host: string, depot: string): Promise<string | undefined>;
  /** Records the states of all policies of the host, as an agent reports them. Does nothing for another kind of host. */
  notePolicies(tenant: string, host: string, states: Readonly<Record<string, string>>): Promise<void>;
}

/** Host operations for other areas. */
export interface Hosts {
  /**
   * Uses the agent session if there is one, else SSH if the host has credentials; otherwise the outcome is
   * `unreachable`. Throws `AppError("not_found")` for an unknown host. Requires the permission to run jobs or
   * deployments.
   */
  dispatch(principal: Principal, host: string, command: HostCommand, options: DispatchOptions): Promise<CommandOutcome>;
  /**
   * Runs over SSH through the jump host, which is reached over SSH if it has credentials, otherwise by its agent. The
   * outcome is `unreachable` if the principal may use no such jump host. Requires the permission to run jobs.
   */
  dispatchBehind(
    principal: Principal,
    behind: ProxiedHost,
    command: HostCommand & { readonly kind: "exec" },
    options: DispatchOptions,
  ): Promise<CommandOutcome>;
  /** The desired state of these hosts changed: connected ones receive it at once, others when they connect. */
  refresh(tenant: string, hosts: readonly string[]): void;
  exists(principal: Principal, host: string): Promise<boolean>;
  /** Undefined if there is no such host, or if the principal may not see it. */
  wayTo(principal: Principal, host: string): Promise<WayTo | undefined>;
  /** Requires the permission to run deployments. Throws `AppError("not_found")` for an unknown host. */
  settings(principal: Principal, host: string): Promise<HostSettings>;
  agentState(principal: Principal, host: string): Promise<AgentState | undefined>;
  /** Reports of all hosts that the principal sees, without columns that are hidden from it. */
  policyReports(principal: Principal): AsyncIterable<readonly PolicyReport[]>;
  /** Names of the depots that the record of the host lists. Empty if there is no such host. */
  depotsOn(principal: Principal, host: string): Promise<readonly string[]>;
  /** Records a depot version on the host record (`depot` map), or removes it. */
  noteDepot(
    principal: Principal,
    host: string,
    depot: { readonly name: string; readonly version: string },
    present: boolean,
  ): Promise<void>;
}
