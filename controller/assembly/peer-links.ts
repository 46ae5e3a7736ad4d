import type { Membership } from "../areas/cluster/index.ts";
import type { HostService } from "../areas/hosts/index.ts";
import type { NotificationHub } from "../areas/notifications/index.ts";
import { type DialPeer, PeerLinks } from "../grpc/index.ts";
import type { Runtime } from "../runtime.ts";

interface Linked {
  readonly runtime: Runtime;
  readonly membership: Membership;
  readonly hosts: HostService;
  readonly notifications: NotificationHub;
  /** Connects to another controller. Absent: by gRPC. */
  readonly dial?: DialPeer | undefined;
}

/** Connections of this controller to the others. */
export function peerLinks({ runtime, membership, hosts, notifications, dial }: Linked): PeerLinks {
  const links = new PeerLinks({
    runtime,
    others: () => membership.others(),
    certificate: () => hosts.peers.certificate(),
    authorities: hosts.agents.authorities,
    interests: () => notifications.interests(),
    receive: (tenant, notification) => notifications.receive(tenant, notification),
    ...(dial && { dial }),
  });
  notifications.onInterests(() => links.tellInterests());
  return links;
}
