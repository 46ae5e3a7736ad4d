import { AppError, errorText } from "../../../../common/errors.ts";
import {
  AGENT_HELLOS_PER_MINUTE,
  AGENT_SESSION_LEASE_MS,
  ENTRIES_WAITING_MAX_BYTES,
  SESSION_HEARTBEAT_MS,
  SESSION_WINDOW_ENTRIES,
  SESSION_WINDOW_MAX_BYTES,
} from "../../../../common/limits.ts";
import type { ControllerFrame, Hello, Welcome } from "../../../../proto/gen/agent/v1/agent.ts";
import type { Runtime } from "../../../runtime.ts";
import type { KvLease, KvStore } from "../../../store/kv.ts";
import type { AgentChannel, AgentIdentity, AgentSession } from "../types.ts";
import { EntryRoom } from "./entry-room.ts";
import { LiveSession, type LiveSessionDependencies } from "./live-session.ts";
import { sessionKey, type Presence, type StoredSession } from "./presence.ts";

const PROTOCOL = 1;
const MINUTE_MS = 60_000;
const TAKEN_OVER = "A newer session of this host took over.";

export interface AgentSessionsDependencies extends Omit<LiveSessionDependencies, "ended" | "room"> {
  /** The system's KvStore. */
  readonly kv: KvStore;
  readonly runtime: Runtime;
  /** Id of this controller, new with every start. */
  readonly controllerId: string;
  readonly presence: Presence;
  /** Throws `AppError("denied")` unless the certificate belongs to the host's current enrolment and the host exists. */
  readonly admit: (identity: AgentIdentity) => Promise<void>;
  /** `host:port` of each controller as agents reach it, this controller first. */
  readonly controllers: () => readonly string[];
  readonly opened: (session: LiveSession, hello: Hello) => Promise<void>;
  /** Called when a session has ended and no session of that epoch is here any more. */
  readonly left: (session: LiveSession) => void;
}

/**
 * The agents connected to this controller. A host has one session: a newer one replaces an older one, here or on
 * another controller.
 */
export class AgentSessions {
  readonly #with: AgentSessionsDependencies;
  readonly #live = new Map<string, LiveSession>();
  readonly #hellos = new Map<string, number>();
  readonly #room = new EntryRoom({ maxBytes: ENTRIES_WAITING_MAX_BYTES, sessionMaxBytes: SESSION_WINDOW_MAX_BYTES });
  #helloMinute = 0;
  #lease: Promise<KvLease> | undefined;
  #held: KvLease | undefined;
  #closed = false;

  constructor(dependencies: AgentSessionsDependencies) {
    this.#with = dependencies;
    dependencies.presence.onEnd(({ tenant, host }, revision) => this.#endedInStore(sessionKey(tenant, host), revision));
  }

  get count(): number {
    return this.#live.size;
  }

  /** Bytes of entries received from agents and not yet stored. */
  get waitingBytes(): number {
    return this.#room.heldBytes;
  }

  /**
   * The session of the host on this controller. Excludes a session whose lease has expired, even before the loss is
   * reported, because another controller may hold the host's session by now.
   */
  live(tenant: string, host: string): LiveSession | undefined {
    return this.#held?.held() === false ? undefined : this.#live.get(sessionKey(tenant, host));
  }

  /** Answers a hello. Throws an `AppError` with the reason if it is refused. */
  async open(identity: AgentIdentity, hello: Hello, channel: AgentChannel): Promise<AgentSession> {
    if (this.#closed) throw new AppError("unavailable", "The controller is shutting down.");
    this.#checkHello(identity, hello);
    await this.#with.admit(identity);
    const acknowledged = await this.#with.sink.acknowledged({ ...identity, streamId: hello.streamId });
    const epoch = await this.#register(identity, hello);
    const session = this.#session({ identity, epoch, hello, channel });
    await this.#greet(session, { hello, welcome: this.#welcome(session.epoch, acknowledged) });
    return session;
  }

  /** Sends the frame to every agent connected here. */
  tell(frame: ControllerFrame["frame"]): void {
    for (const session of this.#live.values()) session.send(frame);
  }

  /** Ends the session of a host on any controller. */
  async drop(tenant: string, host: string, reason: string): Promise<void> {
    this.live(tenant, host)?.close("denied", reason);
    await this.#with.presence.drop(tenant, host);
  }

  /** Ends the sessions here of a deleted tenant's hosts. */
  async leave(tenant: string): Promise<void> {
    const hosts = [...this.#live.values()].map(({ identity }) => identity).filter((one) => one.tenant === tenant);
    for (const { host } of hosts) await this.drop(tenant, host, `The tenant ${tenant} was deleted.`);
  }

  async close(): Promise<void> {
    this.#closed = true;
    const sessions = [...this.#live.values()];
    for (const session of sessions) session.close("unavailable", "The controller is shutting down.");
    await Promise.all(sessions.map((session) => session.ended()));
    const lease = await this.#lease?.catch(() => undefined);
    await lease?.revoke();
  }

  #checkHello(identity: AgentIdentity, hello: Hello): void {
    if (hello.protocol !== PROTOCOL) {
      throw new AppError(
        "unsupported",
        `The agent speaks protocol ${hello.protocol}, this controller speaks ${PROTOCOL}.`,
      );
    }
    const named = hello.facts?.host ?? "";
    if (named !== "" && named !== identity.host) {
      throw new AppError(
        "denied",
        `The hello names the host ${named.slice(0, 100)}, the certificate ${identity.host}.`,
      );
    }
    if (!/^[0-9A-Za-z_-]{8,64}$/.test(hello.streamId)) throw new AppError("invalid", "The hello has no stream id.");
    this.#countHello(sessionKey(identity.tenant, identity.host));
  }

  /** Two agents with one certificate would replace each other forever; this limit keeps that cheap. */
  #countHello(key: string): void {
    const minute = Math.floor(this.#with.runtime.clock.monotonicMs() / MINUTE_MS);
    if (this.#helloMinute !== minute) this.#hellos.clear();
    this.#helloMinute = minute;
    const count = (this.#hellos.get(key) ?? 0) + 1;
    this.#hellos.set(key, count);
    if (count > AGENT_HELLOS_PER_MINUTE)
      throw new AppError("limited", "This host connects too often: come back in a minute.");
  }

  #session(start: { identity: AgentIdentity; epoch: number; hello: Hello; channel: AgentChannel }): LiveSession {
    const session = new LiveSession({ ...this.#with, room: this.#room, ended: (ended) => this.#ended(ended) }, start);
    const key = sessionKey(start.identity.tenant, start.identity.host);
    // Another session of the host may have begun while this one registered.
    const other = this.#live.get(key);
    const older = other && other.epoch > start.epoch ? session : other;
    if (older !== session) this.#live.set(key, session);
    older?.close("conflict", TAKEN_OVER);
    if (older !== session) this.#with.presence.began(start.identity, start.epoch);
    return session;
  }

  async #greet(
    session: LiveSession,
    { hello, welcome }: { readonly hello: Hello; readonly welcome: Welcome },
  ): Promise<void> {
    try {
      // Checked again now that a removal of the host would find the session.
      await this.#with.admit(session.identity);
      session.send({ $case: "welcome", value: welcome });
      await session.refresh();
      await this.#with.opened(session, hello);
    } catch (error) {
      await session.ended();
      throw error;
    }
  }

  #welcome(epoch: number, acknowledged: number): Welcome {
    return {
      epoch,
      acknowledged,
      heartbeatMs: SESSION_HEARTBEAT_MS,
      windowEntries: SESSION_WINDOW_ENTRIES,
      controllers: [...this.#with.controllers()],
    };
  }

  #register(identity: AgentIdentity, hello: Hello): Promise<number> {
    const { presence, runtime, controllerId } = this.#with;
    const stored: StoredSession = {
      controller: controllerId,
      nonce: Buffer.from(runtime.random.bytes(9)).toString("base64url"),
      agentVersion: hello.agentVersion.slice(0, 100),
      sinceMs: runtime.clock.nowMs(),
    };
    return presence.register(identity, stored, () => this.#openLease());
  }

  /**
   * Opens one lease for all sessions of this controller. If it is lost, other controllers no longer see the sessions,
   * so their agents have to reconnect.
   */
  #openLease(): Promise<KvLease> {
    this.#lease ??= this.#newLease().catch((error: unknown) => {
      this.#lease = undefined;
      throw error;
    });
    return this.#lease;
  }

  async #newLease(): Promise<KvLease> {
    const lease = await this.#with.kv.lease(AGENT_SESSION_LEASE_MS);
    this.#held = lease;
    lease.lost.addEventListener("abort", () => this.#leaseLost(), { once: true });
    return lease;
  }

  #leaseLost(): void {
    this.#lease = undefined;
    if (this.#closed) return;
    this.#with.runtime.log.warn({ sessions: this.#live.size }, "the lease of the agent sessions was lost");
    for (const session of this.#live.values())
      session.close("unavailable", "The controller lost its place in the cluster.");
  }

  #endedInStore(key: string, revision: number): void {
    const session = this.#live.get(key);
    if (session && session.epoch < revision) session.close("conflict", TAKEN_OVER);
  }

  async #ended(session: LiveSession): Promise<void> {
    const { tenant, host } = session.identity;
    const key = sessionKey(tenant, host);
    if (this.#live.get(key) === session) this.#live.delete(key);
    try {
      await this.#with.presence.ended(session.identity, session.epoch);
    } catch (error) {
      this.#with.runtime.log.warn(
        { tenant, host, reason: errorText(error) },
        "the end of an agent session could not be written; its lease will",
      );
    }
    this.#with.left(session);
  }
}
