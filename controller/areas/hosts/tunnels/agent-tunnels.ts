import type { Duplex } from "node:stream";
import { AppError, ERROR_CODES, type ErrorCode } from "../../../../common/errors.ts";
import { AGENT_TUNNELS_MAX, TUNNEL_ANSWER_MS, TUNNEL_MESSAGE_MAX_CHARACTERS } from "../../../../common/limits.ts";
import { beginningOf } from "../../../../common/text/cut.ts";
import type { TunnelOpened } from "../../../../proto/gen/agent/v1/agent.ts";
import type { Runtime } from "../../../runtime.ts";
import type { LiveSession } from "../session/live-session.ts";
import { generationOf } from "../authority/identity.ts";
import { sessionKey } from "../session/presence.ts";
import { TunnelBroken, type AgentIdentity, type TunnelPlace } from "../types.ts";

export interface AgentTunnelsDependencies {
  readonly runtime: Pick<Runtime, "clock" | "random">;
  readonly live: (tenant: string, host: string) => LiveSession | undefined;
  /** Returns true if a group declares the place as reachable through that host. */
  readonly leads: (place: TunnelPlace) => Promise<boolean>;
}

interface Asked {
  readonly place: TunnelPlace;
  /** Enrolment of the agent that was asked. */
  readonly generation: string | undefined;
  readonly resolve: (stream: Duplex) => void;
  readonly reject: (error: AppError) => void;
}

const ID_BYTES = 18;

/** Tunnels that agents open for this controller, in the sessions that it holds. */
export class AgentTunnels {
  readonly #with: AgentTunnelsDependencies;
  readonly #asked = new Map<string, Asked>();
  /** Open tunnels by session. */
  readonly #open = new Map<string, Set<Duplex>>();

  constructor(dependencies: AgentTunnelsDependencies) {
    this.#with = dependencies;
  }

  /** Opens a tunnel. Throws an `AppError` with the reason if it fails. */
  async open(place: TunnelPlace, signal: AbortSignal): Promise<Duplex> {
    const { tenant, host, group } = place;
    if (!(await this.#with.leads(place)))
      throw new AppError("denied", `The group ${group} of type proxy does not lead from ${host} to ${textOf(place)}.`);
    const session = this.#with.live(tenant, host);
    if (!session) throw new AppError("unavailable", `The agent of ${host} is not connected.`);
    if (!session.canTunnel)
      throw new AppError(
        "unsupported",
        `The agent of ${host} is too old to lead anywhere: replace it by the present one.`,
      );
    if (this.#countOf(place) >= AGENT_TUNNELS_MAX)
      throw new AppError(
        "limited",
        `The agent of ${host} has ${AGENT_TUNNELS_MAX} connections to other hosts already.`,
        {
          details: { limit: "AGENT_TUNNELS_MAX" },
        },
      );
    return this.#ask(session, place, signal);
  }

  /**
   * Handles an agent's answer: the stream of the tunnel, or in `code` and `message` the reason why there is none.
   * Throws `AppError("denied")` if the tunnel was not requested or no caller waits.
   */
  take({ tenant, host, serial }: AgentIdentity, { id, code, message }: TunnelOpened, stream: Duplex): void {
    const asked = this.#asked.get(id);
    const isOf = asked?.place.tenant === tenant && asked.place.host === host;
    if (!isOf || asked.generation !== generationOf(serial))
      throw new AppError("denied", "Nobody waits for this tunnel.");
    if (code === "") return asked.resolve(stream);
    const why = beginningOf(message, TUNNEL_MESSAGE_MAX_CHARACTERS);
    asked.reject(
      new AppError(
        isErrorCode(code) ? code : "unavailable",
        `Its agent does not lead to ${textOf(asked.place)}: ${why}`,
      ),
    );
    stream.destroy();
  }

  /** The session of the host is over: ends its tunnels. */
  leave(tenant: string, host: string): void {
    const lost = `The agent of ${host} went away.`;
    for (const { place, reject } of [...this.#asked.values()])
      if (place.tenant === tenant && place.host === host) reject(new AppError("unavailable", lost));
    for (const stream of this.#open.get(sessionKey(tenant, host)) ?? []) stream.destroy(new TunnelBroken(lost, true));
  }

  #ask(session: LiveSession, place: TunnelPlace, signal: AbortSignal): Promise<Duplex> {
    const id = Buffer.from(this.#with.runtime.random.bytes(ID_BYTES)).toString("base64url");
    const { address, port } = place;
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        this.#asked.delete(id);
        late();
        signal.removeEventListener("abort", aborted);
      };
      const refuse = (error: AppError): void => {
        settle();
        reject(error);
      };
      const aborted = (): void => refuse(new AppError("cancelled", "The time was over before its agent answered."));
      const late = this.#with.runtime.clock.after(TUNNEL_ANSWER_MS, () =>
        refuse(new AppError("deadline", `Its agent did not answer within ${TUNNEL_ANSWER_MS} ms.`)),
      );
      const take = (stream: Duplex): void => {
        settle();
        this.#keep(place, stream);
        resolve(stream);
      };
      const generation = generationOf(session.identity.serial);
      this.#asked.set(id, { place, generation, resolve: take, reject: refuse });
      if (signal.aborted) return aborted();
      signal.addEventListener("abort", aborted, { once: true });
      session.send({ $case: "openTunnel", value: { id, epoch: session.epoch, address, port } });
    });
  }

  #keep({ tenant, host }: TunnelPlace, stream: Duplex): void {
    const key = sessionKey(tenant, host);
    const streams = this.#open.get(key) ?? new Set();
    this.#open.set(key, streams.add(stream));
    stream.once("close", () => {
      streams.delete(stream);
      if (streams.size === 0 && this.#open.get(key) === streams) this.#open.delete(key);
    });
  }

  #countOf({ tenant, host }: TunnelPlace): number {
    const asked = [...this.#asked.values()].filter(({ place }) => place.tenant === tenant && place.host === host);
    return asked.length + (this.#open.get(sessionKey(tenant, host))?.size ?? 0);
  }
}

function textOf({ address, port }: TunnelPlace): string {
  return `${address}:${port}`;
}

function isErrorCode(value: string): value is ErrorCode {
  return Object.hasOwn(ERROR_CODES, value);
}
