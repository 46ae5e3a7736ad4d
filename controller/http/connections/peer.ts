import type { IncomingMessage } from "node:http";
import { isIP, type Socket } from "node:net";
import { Networks } from "../../settings/network.ts";

/** The client of a request as far as it is known, and the address that it called. */
export interface Peer {
  readonly remote: string;
  readonly host: string;
  readonly protocol: "http" | "https";
  /** True if an address that is no trusted proxy claims that the call came from elsewhere. */
  readonly isForwardedByOthers: boolean;
}

/** Finds the client behind trusted proxies. Claims of other peers about the origin of a call are ignored. */
export class Peers {
  readonly #proxies: Networks;
  /** By connection, because all its calls come from the same address. */
  readonly #near = new WeakMap<Socket, { readonly address: string; readonly isProxy: boolean }>();

  constructor(trustedProxies: readonly string[]) {
    this.#proxies = new Networks(trustedProxies);
  }

  of({ socket, headers }: Pick<IncomingMessage, "socket" | "headers">): Peer {
    const { address, isProxy } = this.#nearOf(socket);
    const host = headers.host ?? "";
    if (!isProxy) {
      const isForwardedByOthers = headers["x-forwarded-for"] !== undefined || headers.forwarded !== undefined;
      return { remote: address, host, protocol: "http", isForwardedByOthers };
    }
    return {
      remote: this.#client(address, listed(headers["x-forwarded-for"])),
      host: listed(headers["x-forwarded-host"]).at(-1) ?? host,
      protocol: listed(headers["x-forwarded-proto"]).at(-1)?.toLowerCase() === "https" ? "https" : "http",
      isForwardedByOthers: false,
    };
  }

  #nearOf(socket: Socket): { readonly address: string; readonly isProxy: boolean } {
    const known = this.#near.get(socket);
    if (known !== undefined) return known;
    const address = socket.remoteAddress ?? "";
    const near = { address, isProxy: this.#proxies.includes(address) };
    this.#near.set(socket, near);
    return near;
  }

  /**
   * Reads the addresses from the nearest on. The address that a trusted proxy names is believed. If it is a trusted
   * proxy, too, the next one is read.
   */
  #client(nearest: string, named: readonly string[]): string {
    let client = nearest;
    for (const text of [...named].reverse()) {
      const address = bare(text);
      if (isIP(address) === 0) return client;
      client = address;
      if (!this.#proxies.includes(client)) return client;
    }
    return client;
  }
}

function listed(header: string | string[] | undefined): readonly string[] {
  return (header ?? "")
    .toString()
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
}

/** Removes the port that some proxies add. */
function bare(text: string): string {
  return /^\[([^\]]+)\](:\d+)?$/.exec(text)?.[1] ?? /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(text)?.[1] ?? text;
}
