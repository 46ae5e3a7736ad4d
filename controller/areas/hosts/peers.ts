import type { Duplex } from "node:stream";
import { errorText } from "../../../common/errors.ts";
import { CONTROLLER_NAME } from "./authority/authority.ts";
import { pem } from "./authority/certificates.ts";
import type { HostComponents, HostServiceDependencies } from "./components.ts";
import type { CommandListener, PeerCall, PeerWatch, TunnelPlace } from "./types.ts";

/** What other controllers reach by their certificate: the sessions that this one holds. */
export class HostPeers {
  readonly #with: Pick<HostServiceDependencies, "controllerId" | "runtime">;
  readonly #components: HostComponents;

  constructor(dependencies: Pick<HostServiceDependencies, "controllerId" | "runtime">, components: HostComponents) {
    this.#with = dependencies;
    this.#components = components;
  }

  /** PEM, for dialling other controllers under the name `as`; new with every call. */
  async certificate(): Promise<{ certificate: string; key: string; as: string }> {
    const { certificate, key } = await this.#components.authority.issueController(this.#with.controllerId);
    return { certificate: pem("CERTIFICATE", certificate), key: pem("PRIVATE KEY", key), as: CONTROLLER_NAME };
  }

  /** As `Hosts.refresh`, for the sessions of this controller alone. */
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

  /** Does for another controller what only the holder of the session can; `undefined` when the session is not here. */
  serve(watch: PeerWatch, listener: CommandListener): (PeerCall & { readonly epoch: number }) | undefined {
    return this.#components.commands.serve(watch, listener);
  }

  /** Over an agent whose session is here; `AppError` says why there is none. */
  openTunnel(place: TunnelPlace, signal: AbortSignal): Promise<Duplex> {
    return this.#components.tunnels.open(place, signal);
  }

  /** The controllers that are there changed: agents are told. */
  controllersChanged(): void {
    this.#components.sessions.tell({ $case: "controllers", value: { addresses: [...this.#components.addresses()] } });
  }
}
