import { isIP } from "node:net";
import { checkServerIdentity } from "node:tls";
import type { ChannelOptions, VerifyOptions } from "@grpc/grpc-js";

/** Sent in place of an address. No server has this name (RFC 2606). */
const NAMELESS = "odp.invalid";

export interface ServerIdentity {
  readonly verify: VerifyOptions;
  readonly channel: ChannelOptions;
}

/**
 * Options of a TLS channel to `address` (host and port). An IP address cannot be sent as the name of a server (RFC 6066,
 * section 3), and Node refuses it from version 26 on. The certificate must be for that address all the same.
 */
export function serverIdentity(address: string): ServerIdentity {
  const host = new URL(`grpc://${address}`).hostname.replace(/^\[|\]$/g, "");
  if (isIP(host) === 0) return { verify: {}, channel: {} };
  return {
    verify: { checkServerIdentity: (_name, certificate) => checkServerIdentity(host, certificate) },
    channel: { "grpc.ssl_target_name_override": NAMELESS },
  };
}
