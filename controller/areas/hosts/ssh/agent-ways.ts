import type { Duplex } from "node:stream";
import { SSH_KILL_GRACE_MS } from "../../../../common/limits.ts";
import type { Clock } from "../../../../common/time.ts";
import { TunnelBroken, type HostBehind, type Target, type TunnelPlace } from "../types.ts";
import { jumpFailed, type JumpWay } from "./jumps.ts";

export interface AgentWayDependencies {
  readonly clock: Clock;
  /** Over the agent of the jump host, whichever controller holds its session; `AppError` says why there is none. */
  readonly open: (place: TunnelPlace, signal: AbortSignal) => Promise<Duplex>;
}

/** A way to a host behind another one, over the agent of that one. Failures are as those of `SshJumps.way`. */
export async function agentWay(
  { clock, open }: AgentWayDependencies,
  { tenant }: Pick<Target, "tenant">,
  { behind, signal }: { readonly behind: HostBehind; readonly signal: AbortSignal },
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
