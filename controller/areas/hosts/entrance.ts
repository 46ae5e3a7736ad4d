import { Networks } from "../../network.ts";

/** Where hosts come in. */
export interface Entrance {
  /** Base URL of the HTTP interface, as hosts reach it. */
  readonly url: string;
  /** Why other hosts do not get there, and what mends it. */
  readonly obstacles: readonly string[];
}

export interface Listening {
  /** The address that is listened on. */
  readonly host: string;
  readonly port: number;
  /** Names and addresses under which the controller says it is reached. */
  readonly publicNames: readonly string[];
}

const LOOPBACK = new Networks(["127.0.0.0/8", "::1"]);
/** Listening on these is listening on all addresses; nothing is reached under them. */
const UNSPECIFIED = new Set(["0.0.0.0", "::"]);

const ON_LOOPBACK =
  "This controller listens on loopback only, so that no other host reaches it: set ODP_HOST to an address of it (0.0.0.0 for all) and " +
  "ODP_PUBLIC_NAMES to the name under which hosts reach it, and start it again.";
const WITHOUT_NAME =
  "The controller has no name under which other hosts reach it: set ODP_PUBLIC_NAMES to one, and start it again.";

export function entranceOf({ host, port, publicNames }: Listening): Entrance {
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
