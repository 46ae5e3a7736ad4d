import type { experimental } from "@grpc/grpc-js";
import { errorText } from "../../common/errors.ts";
import type { Runtime } from "../runtime.ts";

type CaListener = Parameters<experimental.CertificateProvider["addCaCertificateListener"]>[0];
type IdentityListener = Parameters<experimental.CertificateProvider["addIdentityCertificateListener"]>[0];

const RENEW_AGAIN_MS = 60_000;
/** Maximum delay of one timer. For a longer delay, the clock is checked in between. */
const TIMER_MS = 3_600_000;

export interface IssuedServerCertificate {
  /** PEM. */
  readonly certificate: string;
  readonly key: string;
  readonly untilMs: number;
}

/** The certificate of the agent port. It is renewed after two thirds of its lifetime; open connections continue. */
export class ServerCertificate implements experimental.CertificateProvider {
  readonly #issue: () => Promise<IssuedServerCertificate>;
  readonly #runtime: Runtime;
  readonly #authorities: Buffer;
  readonly #listeners = new Set<IdentityListener>();
  #current: IssuedServerCertificate;
  #renewAtMs: number;
  #cancel: () => void = () => undefined;

  private constructor(first: IssuedServerCertificate, dependencies: ServerCertificateDependencies) {
    this.#issue = dependencies.issue;
    this.#runtime = dependencies.runtime;
    this.#authorities = Buffer.from(dependencies.authorities);
    this.#current = first;
    this.#renewAtMs = this.#renewalOf(first);
    this.#schedule();
  }

  static async open(dependencies: ServerCertificateDependencies): Promise<ServerCertificate> {
    return new ServerCertificate(await dependencies.issue(), dependencies);
  }

  addCaCertificateListener(listener: CaListener): void {
    process.nextTick(listener, { caCertificate: this.#authorities });
  }

  removeCaCertificateListener(_listener: CaListener): void {
    // The authorities never change while the program runs.
  }

  addIdentityCertificateListener(listener: IdentityListener): void {
    this.#listeners.add(listener);
    process.nextTick(listener, this.#update());
  }

  removeIdentityCertificateListener(listener: IdentityListener): void {
    this.#listeners.delete(listener);
  }

  close(): void {
    this.#cancel();
  }

  #update(): { certificate: Buffer; privateKey: Buffer } {
    return { certificate: Buffer.from(this.#current.certificate), privateKey: Buffer.from(this.#current.key) };
  }

  #renewalOf(certificate: IssuedServerCertificate): number {
    const nowMs = this.#runtime.clock.nowMs();
    return nowMs + (2 / 3) * (certificate.untilMs - nowMs);
  }

  #schedule(): void {
    const delayMs = Math.max(1, Math.min(TIMER_MS, this.#renewAtMs - this.#runtime.clock.nowMs()));
    this.#cancel = this.#runtime.clock.after(delayMs, () => {
      if (this.#runtime.clock.nowMs() < this.#renewAtMs) return this.#schedule();
      void this.#renew();
    });
  }

  async #renew(): Promise<void> {
    try {
      this.#current = await this.#issue();
      this.#renewAtMs = this.#renewalOf(this.#current);
      for (const listener of this.#listeners) listener(this.#update());
    } catch (error) {
      this.#runtime.log.error({ reason: errorText(error) }, "the certificate of the agent port could not be renewed");
      this.#renewAtMs = this.#runtime.clock.nowMs() + RENEW_AGAIN_MS;
    }
    this.#schedule();
  }
}

export interface ServerCertificateDependencies {
  readonly issue: () => Promise<IssuedServerCertificate>;
  /** CA certificates of agents, PEM. */
  readonly authorities: string;
  readonly runtime: Runtime;
}
