import type { IncomingHttpHeaders } from "node:http";
import { isIP } from "node:net";

/** Address that a client called: the origin of our own pages, as far as it is known. */
export interface OwnAddress {
  /** Host and port as the request names them, or as a trusted proxy says the client named them. */
  readonly host: string;
  /** `http` also stands for TLS that ended at a proxy that is not configured. */
  readonly protocol: string;
  /** Names this installation is known under besides, by HTTPS on its usual port. */
  readonly publicNames: readonly string[];
}

/** Why a call is confined to reading, as its caller reads it. */
export const NO_PROOF =
  "A call by cookie that changes or runs something must prove that no page of another site sent it: by Origin or Referer of this address, " +
  "the header X-Requested-With, or the session id as sessionid.";

type Proof = "proven" | "foreign" | "unknown";

/**
 * True if credentials that a browser sends by itself, a cookie or Basic, may change or run something. A browser says
 * where a request comes from; programs with a cookie jar say nothing.
 */
export function provesOrigin(headers: IncomingHttpHeaders, own: OwnAddress, credentials: "cookie" | "basic"): boolean {
  const proof = proofIn(headers, own);
  if (proof !== "unknown") return proof === "proven";
  return credentials === "basic" || !/^Mozilla\//.test(headers["user-agent"] ?? "");
}

/**
 * True if the call may sign in its sender. A page or a link of another site may not: its author would have the victim
 * work under the author's name. The password stands in the call itself, so programs need no proof.
 */
export function maySignIn(headers: IncomingHttpHeaders, own: OwnAddress): boolean {
  const proof = proofIn(headers, own);
  return proof === "proven" || (proof === "unknown" && headers.referer === undefined);
}

/**
 * True if the host that the request names is this installation: an address, `localhost` or a public name. For what is
 * open by the caller's address alone: a page whose own name was made to resolve to this machine (DNS rebinding) calls
 * from an address that may, and gives itself away by that name. Browsers always name a host.
 */
export function namesOwnHost({ host, publicNames }: Pick<OwnAddress, "host" | "publicNames">): boolean {
  if (host === "") return true;
  if (!URL.canParse(`http://${host}`)) return false;
  const { hostname } = new URL(`http://${host}`);
  const isAddress = isIP(hostname.replace(/^\[|\]$/g, "")) !== 0;
  return isAddress || hostname === "localhost" || publicNames.some((name) => name.toLowerCase() === hostname);
}

/**
 * A Referer is believed last: it stays the same on a detour over another site, and in a sandboxed frame, where the
 * others do not.
 */
function proofIn(headers: IncomingHttpHeaders, own: OwnAddress): Proof {
  // Pages of others may add these only after a preflight, which is never allowed.
  if (headers["x-requested-with"] !== undefined || headers["x-csrf-token"] !== undefined) return "proven";
  const site = headers["sec-fetch-site"];
  if (site === "same-origin") return "proven";
  if (headers.origin !== undefined) return isOwn(headers.origin, own) ? "proven" : "foreign";
  if (site !== undefined) return "foreign";
  return headers.referer !== undefined && isOwn(headers.referer, own) ? "proven" : "unknown";
}

function isOwn(address: string, { host, protocol, publicNames }: OwnAddress): boolean {
  if (!/^https?:\/\//i.test(address) || !URL.canParse(address)) return false;
  const from = new URL(address);
  if (protocol === "https" && from.protocol !== "https:") return false;
  const own = `${from.protocol}//${host}`;
  if (!URL.canParse(own)) return false;
  const { host: ownHost, hostname } = new URL(own);
  if (from.host === ownHost) return true;
  // A proxy put a name of its own in place of the public one. The same name on another port is another origin.
  return (
    from.hostname !== hostname && from.protocol === "https:" && from.port === "" && publicNames.includes(from.hostname)
  );
}
