import type { Socket } from "node:net";
import { AppError, errorText, isAppError, type ErrorCode } from "../../common/errors.ts";
import { AGENT_TUNNELS_MAX } from "../../common/limits.ts";
import type { Clock } from "../../common/time.ts";
import type { OpenTunnel } from "../../proto/gen/agent/v1/agent.ts";
import type { Journal } from "../commands/journal.ts";
import type { Log } from "../log.ts";
import type { TunnelCall } from "../session/transport.ts";
import { Tunnel } from "./tunnel.ts";
import { connectedTo } from "./place.ts";

export interface TunnelsOptions {
  readonly journal: Pick<Journal, "highestEpoch">;
  readonly clock: Clock;
  readonly log: Log;
  /** True if the operator of this host allows tunnels to this address and port. */
  readonly isOpen: (address: string, port: number) => boolean;
}

/** Opens tunnels for the controllers: connections to addresses that they name. */
export class Tunnels {
  readonly #options: TunnelsOptions;
  readonly #open = new Set<AbortController>();

  constructor(options: TunnelsOptions) {
    this.#options = options;
  }

  /** Opens a tunnel. Returns before the connection is made; the agent sends the outcome over `call`. */
  take(asked: OpenTunnel, call: TunnelCall): void {
    const refused = this.#refusal(asked);
    if (refused) return refuse(call, asked.id, refused);
    const over = new AbortController();
    this.#open.add(over);
    void this.#lead(asked, call, over.signal).finally(() => this.#open.delete(over));
  }

  stop(): void {
    for (const over of this.#open) over.abort();
  }

  /**
   * The reason to refuse a tunnel; undefined when it is allowed. A session with an old epoch is refused, because
   * another one has replaced it.
   */
  #refusal({ address, port, epoch }: OpenTunnel): AppError | undefined {
    const { journal, isOpen } = this.#options;
    if (epoch < journal.highestEpoch) return new AppError("conflict", "another session took the place of this one");
    if (!isOpen(address, port))
      return new AppError("denied", `the agent's setting --tunnels does not allow ${address}:${port}`);
    if (this.#open.size >= AGENT_TUNNELS_MAX)
      return new AppError("limited", `${AGENT_TUNNELS_MAX} connections are open already`);
    return undefined;
  }

  async #lead(asked: OpenTunnel, call: TunnelCall, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    const place = `${asked.address}:${asked.port}`;
    let socket: Socket;
    try {
      socket = await connectedTo(asked, clock, signal);
    } catch (error) {
      log("warn", "a tunnel could not be opened", { place, error: errorText(error) });
      return refuse(call, asked.id, error);
    }
    log("info", "a tunnel is open", { place });
    const end = await new Tunnel({ id: asked.id, socket, call, clock }).carry(signal);
    log("info", "a tunnel is closed", { place, ...end });
  }
}

function refuse(call: TunnelCall, id: string, error: unknown): void {
  const code: ErrorCode = isAppError(error) ? error.code : "unavailable";
  call.on("error", () => undefined);
  call.write({ frame: { $case: "opened", value: { id, code, message: errorText(error) } } }, () => undefined);
  call.end();
  call.resume();
}
