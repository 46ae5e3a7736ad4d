import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { isAppError } from "../../../common/errors.ts";
import type { Membership } from "../../../controller/areas/cluster/index.ts";
import type { HostService, HostServiceDependencies } from "../../../controller/areas/hosts/index.ts";
import type { NotificationHub } from "../../../controller/areas/notifications/index.ts";
import { AgentServer, type PeerLinks } from "../../../controller/grpc/index.ts";
import type { Runtime } from "../../../controller/runtime.ts";

interface Linked {
  readonly runtime: Runtime;
  readonly membership: Membership;
  readonly hosts: HostService;
  readonly notifications: NotificationHub;
}

/** Asks for the connections only when a call needs them, so that they can be made after the hosts. */
export function peersThrough(links: () => PeerLinks): HostServiceDependencies["peers"] {
  return {
    watch: (controller, watch, watcher) => links().watch(controller, watch, watcher),
    tunnel: (controller, place, signal) => links().tunnel(controller, place, signal),
    refresh: (controller, tenant, names) => links().refresh(controller, tenant, names),
  };
}

/** Connects to the controllers that are there, and to those that join later. */
export function followControllers({
  membership,
  links,
  hosts,
}: Pick<Linked, "membership" | "hosts"> & { readonly links: PeerLinks }): void {
  membership.onChange(() => {
    links.follow();
    hosts.peers.controllersChanged();
  });
  links.follow();
}

/** The server for agents and for other controllers. */
export function agentServer(
  { runtime, hosts, notifications }: Omit<Linked, "membership">,
  sessionsMax?: number,
): AgentServer {
  return new AgentServer({
    runtime,
    open: (identity, hello, channel) => hosts.agents.openSession(identity, hello, channel),
    content: (identity, digest) => hosts.agents.content(identity, digest),
    tunnel: (identity, opened, stream) => hosts.agents.takeTunnel(identity, opened, stream),
    certificate: () => hosts.agents.serverCertificate(),
    authorities: hosts.agents.authorities,
    peers: {
      serve: (watch, listener) => hosts.peers.serve(watch, listener),
      tunnel: (place, signal) => hosts.peers.openTunnel(place, signal),
      refreshHere: (tenant, names) => hosts.peers.refreshHere(tenant, names),
      recent: () => ({ classes: [], records: [], leftOut: 0 }),
      attach: (outlet) => notifications.attach(outlet),
    },
    ...(sessionsMax === undefined ? {} : { sessionsMax }),
  });
}

/** An HTTP server that accepts enrolments and nothing else. */
export async function serveEnrolment(hosts: HostService): Promise<{ readonly url: string; close(): void }> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const answer = hosts.agents.enrol(JSON.parse(Buffer.concat(chunks).toString()));
      answer.then(
        (message) => response.end(JSON.stringify({ status: "ok", message })),
        (error: unknown) => {
          response.statusCode = 500;
          response.end(
            JSON.stringify({
              status: "error",
              message: String(error),
              code: isAppError(error) ? error.code : "internal",
            }),
          );
        },
      );
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, close: () => void server.close() };
}
