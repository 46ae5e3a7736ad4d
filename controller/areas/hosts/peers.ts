import type { Duplex } from "node:stream";
import { errorText } from "../../../common/errors.ts";
import { CONTROLLER_NAME } from "./authority/authority.ts";
import { pem } from "./authority/certificates.ts";
import type { HostComponents, HostServiceDependencies } from "./components.ts";
import type { CommandListener, PeerCall, PeerWatch, TunnelPlace } from "./types.ts";

/** Operations for other controllers that present a certificate: they use the sessions that this controller holds. */
export class HostPeers {
  readonly #with: Pick<HostServiceDependencies, "controllerId" | "runtime">;
  readonly #components: HostComponents;

  constructor(dependencies: Pick<HostServiceDependencies, "controllerId" | "runtime">, components: HostComponents) {
    this.#with = dependencies;
    this.#components = components;
  }

  /** Certificate in PEM for connections to other controllers under the name `as`; a new one with every call. */
  async certificate(): Promise<{ certificate: string; key: string; as: string }> {
    const { certificate, key } = await this.#components.authority.issueController(this.#with.controllerId);
    return { certificate: pem("CERTIFICATE", certificate), key: pem("PRIVATE KEY", key), as: CONTROLLER_NAME };
  }

  /** As `Hosts.refresh`, but only for the sessions of this controller. */
  refreshHere(tenant: string, hosts: readonly string[]): void {
    for (const host of hosts) {
      const session = this.#components.sessions.live(tenant, host);
      session?.refresh().catch((error: unknown) => {
        this.#with.runtime.log.warn(
          { tenant, host, reason: errorText(error) },
          "the desired state could not be sent; the agent has to come again",
        );
        session.close("unavailable", "The desired state could not be read.");
      });
    }
  }

  /** Sends a command for another controller in a session of this one; `undefined` if the session is not here. */
  serve(watch: PeerWatch, listener: CommandListener): (PeerCall & { readonly epoch: number }) | undefined {
    return this.#components.commands.serve(watch, listener);
  }

  /** Opens a tunnel over an agent whose session is here. Throws an `AppError` with the reason if there is none. */
  openTunnel(place: TunnelPlace, signal: AbortSignal): Promise<Duplex> {
    return this.#components.tunnels.open(place, signal);
  }

  /** The set of controllers changed: informs the agents. */
  controllersChanged(): void {
    this.#components.sessions.tell({ $case: "controllers", value: { addresses: [...this.#components.addresses()] } });
  }
}
