import type { Duplex } from "node:stream";
import { SSH_KILL_GRACE_MS } from "../../../../common/limits.ts";
import type { Clock } from "../../../../common/time.ts";
import { TunnelBroken, type ProxiedHost, type Target, type TunnelPlace } from "../types.ts";
import { jumpFailed, type JumpWay } from "./jumps.ts";

export interface AgentWayDependencies {
  readonly clock: Clock;
  /** Opens a tunnel over the jump host's agent, on any controller. Throws an `AppError` with the reason if it fails. */
  readonly open: (place: TunnelPlace, signal: AbortSignal) => Promise<Duplex>;
}

/** Opens a connection to a host behind a jump host, over the agent of that jump host. Fails as `SshJumps.way` does. */
export async function agentWay(
  { clock, open }: AgentWayDependencies,
  { tenant }: Pick<Target, "tenant">,
  { behind, signal }: { readonly behind: ProxiedHost; readonly signal: AbortSignal },
): Promise<JumpWay> {
  const { host, proxy, group, port } = behind;
  let stream: Duplex;
  try {
    stream = await open({ tenant, host: proxy, group, address: host, port }, signal);
  } catch (error) {
    throw jumpFailed(behind, error);
  }
  let isLost = false;
  stream.once("error", (error) => (isLost = !(error instanceof TunnelBroken) || error.wayLost));
  const release = (): void => {
    stream.end();
    clock.after(SSH_KILL_GRACE_MS, () => stream.destroy());
  };
  return { stream, proxy, release, isLost: () => isLost };
}
