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

/** How every target of every action ends, exactly once, by its deadline. */
export type FinalState = "ok" | "failed" | "timeout" | "unreachable" | "cancelled" | "expired";

export interface CommandOutcome {
  readonly host: string;
  readonly state: FinalState;
  /** Exit code, when a process ended by itself. */
  readonly code?: number;
  /** The name of the signal that ended the process, `SIGKILL`; absent: none did, or its host does not tell. */
  readonly signal?: string;
  /** Of the process on its host; absent: none was started, or its host does not tell. */
  readonly pid?: number;
  /** Bytes of its output and error output that its host did not send, as there were too many; absent: none. */
  readonly outDropped?: number;
  readonly errDropped?: number;
  /** For people: why it did not go well; empty when it did. */
  readonly message: string;
  readonly startedMs: number;
  readonly endedMs: number;
}

/** One piece of work for one host, the same for both transports. */
export type HostCommand =
  | {
      readonly kind: "exec";
      readonly line: string;
      readonly environment?: Readonly<Record<string, string>>;
      readonly depot?: string;
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
  /** Run in the depot's folder once it is in place. */
  readonly command?: string;
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
  /** After this the target's state is final, `timeout` at the worst. */
  readonly timeoutMs: number;
  /** Repeating with the same id never runs it twice. */
  readonly commandId: string;
  /** In order; every byte once. */
  readonly onOutput?: (piece: OutputPiece) => void;
  /** The host is told to end it, as soon as it can be reached; a host that was not sent it never runs it then. */
  readonly signal?: AbortSignal;
  /** Another controller has perhaps sent it: where the signal has fired already, the host is told all the same. */
  readonly mayRun?: true;
}

export interface OutputPiece {
  readonly stderr: boolean;
  readonly data: Uint8Array;
}

/** The seam between an action and the way it reaches a host: agent stream or SSH. */
export interface Transport {
  /** Never throws for what may happen to a host; the outcome says it. */
  run(target: Target, command: HostCommand, options: DispatchOptions): Promise<CommandOutcome>;
}

export interface Target {
  readonly tenant: string;
  readonly host: string;
  readonly traceparent: string;
  /** Absent: the host has a record, which says how it is reached. */
  readonly behind?: HostBehind;
  /** Its jump host is reached by its agent. */
  readonly byAgent?: boolean;
}

/** A host that is reached over SSH from another one, the jump host, by credentials that are not on a record of its own. */
export interface HostBehind {
  /** As the jump host knows it: a name or an address. */
  readonly host: string;
  /** The jump host, which has a record with credentials for SSH, or an agent. */
  readonly proxy: string;
  /** That says so, of type proxy. */
  readonly group: string;
  readonly port: number;
  readonly username: string;
  /** A password, or a private key in PEM. */
  readonly secret: string;
  /** The fingerprint that the host is to show; empty: none is on record. */
  readonly sshkey: string;
  /** Puts the first fingerprint that it shows on record; throws when another one stands there by now. */
  readonly noteKey: (fingerprint: string) => Promise<void>;
}

/** A place that the agent of a host is to connect to. */
export interface TunnelPlace {
  readonly tenant: string;
  /** The jump host, whose agent it is. */
  readonly host: string;
  /** Of type proxy, that names the place behind that host. */
  readonly group: string;
  /** As the jump host knows it: a name or an address. */
  readonly address: string;
  readonly port: number;
}

/** Why a tunnel that stood is no more. */
export class TunnelBroken extends Error {
  /** False: the place itself broke the connection. */
  readonly wayLost: boolean;

  constructor(message: string, wayLost: boolean) {
    super(message);
    this.wayLost = wayLost;
  }
}

/** What a host's agent is to do, given by the area that owns policies. */
export interface DesiredStateSource {
  desired(
    tenant: string,
    host: string,
  ): Promise<{ readonly revision: number; readonly policies: readonly DesiredPolicy[] }>;
}

export interface DesiredPolicy {
  readonly name: string;
  readonly revision: number;
  /** JSON of a PolicySpec. */
  readonly spec: string;
  readonly depot?: DepotToDeploy;
  readonly conf: string;
}

/** Takes what agents send. */
export interface EntrySink {
  /** A sequence of the stream up to which everything is safe; there may be more. 0 where nothing is known. */
  acknowledged(source: EntrySource): Promise<number>;
  /** What batches that are made now are to be pinned by. */
  told(source: EntrySource, ask: Ask): Promise<Told>;
  /**
   * Resolves when everything of these batches is safe. Idempotent: the same batches make the same rows, whoever takes
   * them, also at once. An error whose details have the reason `PIN_REFUSED` says that the agent has to pin them anew.
   */
  accept(source: EntrySource, batches: readonly Batch[]): Promise<void>;
}

export const PIN_REFUSED = "pin_refused";

export interface EntrySource {
  readonly tenant: string;
  readonly host: string;
  readonly streamId: string;
}

/** The identity of an agent, by its certificate alone. */
export interface AgentIdentity {
  readonly tenant: string;
  readonly host: string;
  /** Serial number of the certificate, hexadecimal. */
  readonly serial: string;
}

/** Why a session ends, as its agent is told. */
export interface SessionEnd {
  readonly code: string;
  readonly message: string;
  /** What the agent pinned cannot be used. */
  readonly askAgain?: boolean;
}

/** The wire side of one session, given by `grpc/`. */
export interface AgentChannel {
  send(frame: ControllerFrame): void;
  /** Ends the stream; with a reason the agent is told first. */
  close(reason?: SessionEnd): void;
}

export interface AgentSession {
  readonly epoch: number;
  receive(frame: AgentFrame): Promise<void>;
  /** The connection is closed. */
  ended(): Promise<void>;
}

/** Receives what comes of a command, after it is stored: twice perhaps, or not at all. */
export interface CommandListener {
  output(output: CommandOutput): void;
  result(result: CommandResult): void;
  state(state: CommandState): void;
  /** Something was left out. */
  lost(): void;
  /** The session in which it was sent is over; nothing more is reported. */
  sessionOver?(): void;
}

/** A command for the session that another controller holds. */
export interface PeerWatch {
  readonly tenant: string;
  readonly host: string;
  /** Without epoch; its times by the clock of the asking controller. */
  readonly command: Command;
}

export interface PeerWatcher extends CommandListener {
  /** It was sent in the session of that epoch; what is stored from now on is reported. */
  watching(epoch: number): void;
  /** No session is there, or none any more: nothing more is reported. Before `watching` nothing was sent. */
  notHeld(): void;
  /** The link broke; nothing more is reported. */
  gone(): void;
}

export interface PeerCall {
  /** The agent is to end the command. */
  cancel(): void;
  /** The caller waits no longer. */
  end(): void;
}

/** Which controllers there are, given by `areas/cluster`. */
export interface Controllers {
  /** The id of this one. */
  readonly own: string;
  all(): readonly { readonly id: string }[];
  has(id: string): boolean;
  /** The answer ends it. */
  onChange(listener: () => void): () => void;
}

/** The other controllers as this area needs them, given by `grpc/`. */
export interface Peers {
  /**
   * `undefined` when that controller cannot be asked now: nothing was sent. The watcher is never told before this
   * returns.
   */
  watch(controller: string, watch: PeerWatch, watcher: PeerWatcher): PeerCall | undefined;
  /** Over an agent whose session that controller holds; `AppError` says why there is none. */
  tunnel(controller: string, place: TunnelPlace, signal: AbortSignal): Promise<Duplex>;
  /** Desired state changed of hosts whose sessions it holds. May be lost. */
  refresh(controller: string, tenant: string, hosts: readonly string[]): void;
}

/** The operations that other areas may call on hosts. */
export interface Hosts {
  /**
   * By agent session when there is one, else SSH when the host has credentials, else `unreachable`. Unknown host:
   * `AppError("not_found")`. A part of jobs and of deployments: takes the permission to run one of them.
   */
  dispatch(principal: Principal, host: string, command: HostCommand, options: DispatchOptions): Promise<CommandOutcome>;
  /**
   * Over SSH through its jump host, which is reached over SSH when it has credentials, else by its agent; `unreachable`
   * where there is none for the principal. A part of jobs.
   */
  dispatchBehind(
    principal: Principal,
    behind: HostBehind,
    command: HostCommand & { readonly kind: "exec" },
    options: DispatchOptions,
  ): Promise<CommandOutcome>;
  /** Hosts whose desired state changed: connected ones are told at once, others when they come. */
  refresh(tenant: string, hosts: readonly string[]): void;
  exists(principal: Principal, host: string): Promise<boolean>;
  /** Notes a depot version on the host record (`depot` map), or takes it off. */
  noteDepot(
    principal: Principal,
    host: string,
    depot: { readonly name: string; readonly version: string },
    present: boolean,
  ): Promise<void>;
}
