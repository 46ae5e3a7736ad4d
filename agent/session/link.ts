import { X509Certificate } from "node:crypto";
import type { AgentFrame, Controllers, Facts, Renewed, Welcome } from "../../proto/gen/agent/v1/agent.ts";
import { AppError, errorText } from "../../common/errors.ts";
import { CERTIFICATE_RENEW_RETRY_MS, FETCH_CALL_MS, SESSION_STEADY_MS, TIMER_MAX_MS } from "../../common/limits.ts";
import { wait, type Clock, type Random } from "../../common/time.ts";
import type { Files } from "../../common/files.ts";
import { Backoff, type Attempt } from "./backoff.ts";
import { createKeyPem, createRequest } from "../identity/csr.ts";
import { lifetimeOf, requireOwnCertificate, storeIdentity, type Identity } from "../identity/identity.ts";
import type { Journal } from "../commands/journal.ts";
import type { Log } from "../log.ts";
import type { Outbox } from "../outbox/outbox.ts";
import { Session, type SessionHandler } from "./session.ts";
import type { Transport } from "./transport.ts";

export interface LinkOptions {
  readonly identity: Identity;
  readonly identityPath: string;
  readonly files: Files;
  readonly transport: Transport;
  readonly outbox: Outbox;
  readonly journal: Journal;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly version: string;
  readonly facts: () => Promise<Facts>;
  readonly values: () => Promise<Record<string, string>>;
  /** Revision of the desired state that the agent works by; 0 when there is none. */
  readonly desiredRevision: () => number;
  readonly handler: Omit<SessionHandler, "renewed" | "controllers">;
}

const PROTOCOL = 1;

/**
 * Keeps a session with one of the controllers. When it ends, the link connects to the next controller. It also renews
 * the certificate of the agent.
 */
export class Link {
  readonly #options: LinkOptions;
  #identity: Identity;
  #active: Session | undefined;
  #renewing: { keyPem: string; sinceMs: number } | undefined;
  #takingOver: Promise<void> | undefined;
  /** Addresses tried since the last pause. */
  readonly #tried = new Set<string>();
  #storing: Promise<void> = Promise.resolve();

  constructor(options: LinkOptions) {
    this.#options = options;
    this.#identity = options.identity;
  }

  get connected(): boolean {
    return this.#active !== undefined && !this.#active.ended;
  }

  /** Keeps a session until the signal fires. */
  async run(signal: AbortSignal): Promise<void> {
    const renewal = this.#watchCertificate(signal);
    const backoff = new Backoff(this.#options.random);
    while (!signal.aborted) {
      const address = this.#nextAddress();
      const attempt = await this.#hold(address, signal);
      if (attempt === "steady") this.#tried.clear();
      this.#tried.add(address);
      backoff.note(attempt);
      // Try the other controllers at once. Pause after all were tried.
      if (this.#identity.controllers.some((other) => !this.#tried.has(other))) continue;
      this.#tried.clear();
      if (!signal.aborted) await wait(this.#options.clock, backoff.nextPauseMs(), signal);
    }
    this.#active?.close();
    await renewal;
  }

  /** Sends a frame. It is dropped when no controller is connected, and may be lost when the connection breaks. */
  send(frame: NonNullable<AgentFrame["frame"]>): void {
    this.#active?.send(frame);
  }

  /**
   * Reads content by its digest from `offset`. `AppError("unavailable")` when no controller is connected, or when the
   * content was not delivered.
   */
  async *fetch(digest: string, offset: number, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    if (!this.#active || this.#active.ended) throw new AppError("unavailable", "No controller is connected.");
    try {
      yield* this.#active.fetch({ digest, offset }, { timeoutMs: FETCH_CALL_MS, signal });
    } catch (error) {
      throw new AppError("unavailable", `The content ${digest.slice(0, 12)} was not delivered: ${errorText(error)}.`, {
        cause: error,
      });
    }
  }

  /**
   * Runs one session, and the sessions that replace it after a renewal of the certificate. Resolves when the last of
   * them has ended.
   */
  async #hold(address: string, signal: AbortSignal): Promise<Attempt> {
    const { log, clock } = this.#options;
    const startedMs = clock.monotonicMs();
    let session: Session | undefined;
    const stop = () => session?.close();
    signal.addEventListener("abort", stop, { once: true });
    try {
      session = this.#open(address);
      await this.#welcomed(session, await session.start());
      let reason = await session.finished();
      // A controller may end the old session before the welcome of the new session arrives here.
      while (this.#takingOver || (this.#active && this.#active !== session)) {
        await this.#takingOver;
        session = this.#active ?? session;
        reason = await session.finished();
      }
      if (!signal.aborted) log("warn", "disconnected", { controller: address, error: reason.message });
      return clock.monotonicMs() - startedMs >= SESSION_STEADY_MS ? "steady" : "short";
    } catch (error) {
      session?.close();
      if (!signal.aborted) log("warn", "not connected", { controller: address, error: errorText(error) });
      return "none";
    } finally {
      signal.removeEventListener("abort", stop);
      this.#active = undefined;
    }
  }

  #open(address: string): Session {
    const { transport, outbox, clock, values, handler } = this.#options;
    const renewed = (answer: Renewed) => this.#renewed(answer);
    const controllers = async ({ addresses }: Controllers) => this.#noteControllers(addresses);
    const wire = transport.open(address, this.#identity);
    return new Session({
      address,
      wire,
      outbox,
      clock,
      values,
      hello: () => this.#hello(),
      handler: { ...handler, renewed, controllers },
    });
  }

  async #hello() {
    const { outbox, journal, version, facts, desiredRevision } = this.#options;
    return {
      protocol: PROTOCOL,
      agentVersion: version,
      streamId: outbox.streamId,
      firstSequence: outbox.firstSequence,
      facts: await facts(),
      desiredRevision: desiredRevision(),
      highestEpoch: journal.highestEpoch,
      tunnels: true,
    };
  }

  async #welcomed(session: Session, welcome: Welcome): Promise<void> {
    const { log, journal, clock } = this.#options;
    await journal.see(welcome.epoch);
    this.#active = session;
    log("info", "connected", {
      controller: session.address,
      epoch: welcome.epoch,
      steadyMs: Math.round(clock.monotonicMs()),
    });
    this.#noteControllers(welcome.controllers);
  }

  #noteControllers(addresses: readonly string[]): void {
    const given = addresses.filter((address) => address !== "");
    if (given.length === 0 || given.join() === this.#identity.controllers.join()) return;
    this.#identity = { ...this.#identity, controllers: given };
    this.#store({ controllers: given }).catch((error: unknown) => {
      this.#options.log("warn", "addresses of the controllers not kept", { error: errorText(error) });
    });
  }

  #nextAddress(): string {
    const { controllers } = this.#identity;
    return controllers.find((address) => !this.#tried.has(address)) ?? controllers[0] ?? "";
  }

  async #watchCertificate(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    while (!signal.aborted) {
      const { renewMs } = lifetimeOf(this.#identity);
      const leftMs = renewMs - clock.nowMs();
      if (leftMs <= 0) this.#askRenewal();
      await wait(
        clock,
        Math.min(TIMER_MAX_MS, Math.max(leftMs, this.connected ? CERTIFICATE_RENEW_RETRY_MS / 60 : 200)),
        signal,
      );
    }
  }

  #askRenewal(): void {
    const nowMs = this.#options.clock.monotonicMs();
    if (!this.connected || (this.#renewing && nowMs - this.#renewing.sinceMs < CERTIFICATE_RENEW_RETRY_MS)) return;
    const keyPem = createKeyPem();
    this.#renewing = { keyPem, sinceMs: nowMs };
    this.send({ $case: "renew", value: { csr: createRequest(keyPem, this.#identity.host) } });
  }

  async #renewed({ certificate, authorities }: Renewed): Promise<void> {
    const { log } = this.#options;
    const asked = this.#renewing;
    if (!asked) return;
    try {
      requireOwnCertificate(certificate, asked.keyPem);
      const trusted =
        authorities.length > 0 ? authorities.map((der) => der.toString("base64")) : this.#identity.authorities;
      for (const der of trusted) new X509Certificate(Buffer.from(der, "base64"));
      await this.#store({ keyPem: asked.keyPem, certificate: certificate.toString("base64"), authorities: trusted });
    } catch (error) {
      log("error", "renewed certificate refused", { error: errorText(error) });
      return;
    }
    this.#renewing = undefined;
    log("info", "certificate renewed", { until: new Date(lifetimeOf(this.#identity).endMs).toISOString() });
    this.#takingOver ??= this.#takeOver().finally(() => (this.#takingOver = undefined));
  }

  /** Replaces the session by one with the new certificate. The old session continues until the new one is accepted. */
  async #takeOver(): Promise<void> {
    const old = this.#active;
    if (!old) return;
    const session = this.#open(old.address);
    try {
      await this.#welcomed(session, await session.start());
      old.close();
    } catch (error) {
      session.close();
      this.#options.log("warn", "session with the new certificate failed; the old one goes on", {
        error: errorText(error),
      });
    }
  }

  /** Stores a change of the identity. Changes run one after another, each on the result of the one before. */
  #store(change: Partial<Identity>): Promise<void> {
    const stored = this.#storing.then(async () => {
      const identity = { ...this.#identity, ...change };
      await storeIdentity(this.#options.identityPath, identity, this.#options.files);
      this.#identity = identity;
    });
    this.#storing = stored.catch(() => undefined);
    return stored;
  }
}
