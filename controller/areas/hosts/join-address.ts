import { Networks } from "../../settings/network.ts";

/** Address at which hosts join. */
export interface JoinAddress {
  /** Base URL of the HTTP interface, as hosts reach it. */
  readonly url: string;
  /** Reasons why other hosts cannot reach the address, each with its remedy. */
  readonly obstacles: readonly string[];
}

export interface Listening {
  /** Address of the listening socket. */
  readonly host: string;
  readonly port: number;
  /** Names and addresses that the controller announces. */
  readonly publicNames: readonly string[];
}

const LOOPBACK = new Networks(["127.0.0.0/8", "::1"]);
/** Wildcard addresses: the socket listens on all addresses, but no host can connect to these. */
const UNSPECIFIED = new Set(["0.0.0.0", "::"]);

const ON_LOOPBACK =
  "This controller listens on loopback only, so that no other host reaches it: set ODP_HOST to an address of it (0.0.0.0 for all) and " +
  "ODP_PUBLIC_NAMES to the name under which hosts reach it, and start it again.";
const WITHOUT_NAME =
  "The controller has no name under which other hosts reach it: set ODP_PUBLIC_NAMES to one, and start it again.";

export function joinAddressOf({ host, port, publicNames }: Listening): JoinAddress {
  const name = publicNames.find((candidate) => !isLocal(candidate)) ?? publicNames[0] ?? host;
  const url = `http://${name.includes(":") ? `[${name}]` : name}:${port}`;
  if (isLoopback(host)) return { url, obstacles: [ON_LOOPBACK] };
  return { url, obstacles: isLocal(name) ? [WITHOUT_NAME] : [] };
}

function isLocal(name: string): boolean {
  return isLoopback(name) || UNSPECIFIED.has(name);
}

function isLoopback(name: string): boolean {
  return name === "localhost" || LOOPBACK.includes(name);
}
