import { connect, createServer, type AddressInfo, type Socket } from "node:net";

export type LinkState = "open" | "cut" | "answers_lost";

/** A TCP relay on 127.0.0.1 that a test can break: it cuts connections, or drops answers while requests arrive. */
export interface LinkProxy extends AsyncDisposable {
  readonly port: number;
  set(state: LinkState): void;
}

export async function openProxy(target: { readonly host: string; readonly port: number }): Promise<LinkProxy> {
  let state: LinkState = "open";
  const sockets = new Set<Socket>();
  const destroyAll = (): void => sockets.forEach((socket) => socket.destroy());
  const server = createServer((client) => {
    if (state === "cut") return void client.destroy();
    const upstream = connect(target.port, target.host);
    for (const [socket, other] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket);
      socket.setNoDelay(true);
      socket.on("error", () => undefined);
      socket.on("close", () => {
        sockets.delete(socket);
        other.destroy();
      });
    }
    client.on("data", (bytes) => upstream.write(bytes));
    upstream.on("data", (bytes) => state === "open" && client.write(bytes));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: (server.address() as AddressInfo).port,
    set: (next) => {
      // A connection that lost bytes is unusable.
      if (next === "cut" || state === "answers_lost") destroyAll();
      state = next;
    },
    [Symbol.asyncDispose]: async () => {
      destroyAll();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** Parses `host:port`, with or without a scheme. */
export function addressOf(endpoint: string): { readonly host: string; readonly port: number } {
  const [host = "", port = ""] = endpoint.replace(/^\w+:\/\//, "").split(":");
  return { host, port: Number(port) };
}
