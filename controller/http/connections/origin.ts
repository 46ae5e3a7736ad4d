import type { IncomingHttpHeaders } from "node:http";
import { isIP } from "node:net";

/** Address that a client called: the origin of odp's own pages, as far as it is known. */
export interface OwnAddress {
  /** Host and port in the request, or those that the client called according to a trusted proxy. */
  readonly host: string;
  /** `http` may also be TLS that ended at a proxy which is not configured. */
  readonly protocol: string;
  /** Other names of this installation, reached by HTTPS on its default port. */
  readonly publicNames: readonly string[];
}

/** Message to the caller of a call that may only read. */
export const NO_PROOF =
  "A call by cookie that changes or runs something must prove that no page of another site sent it: by Origin or Referer of this address, " +
  "the header X-Requested-With, or the session id as sessionid.";

type Proof = "proven" | "foreign" | "unknown";

/**
 * True if credentials that a browser sends by itself, a cookie or Basic, may change or run something. Browsers send the
 * origin of a request; programs with a cookie jar do not. So without an origin, Basic is accepted, and a cookie only if
 * the client does not call itself a browser.
 */
export function provesOrigin(headers: IncomingHttpHeaders, own: OwnAddress, credentials: "cookie" | "basic"): boolean {
  const proof = proofIn(headers, own);
  if (proof !== "unknown") return proof === "proven";
  return credentials === "basic" || !/^Mozilla\//.test(headers["user-agent"] ?? "");
}

/**
 * True if the call may sign in its sender. A page or a link of another site may not: the victim would work under the
 * name of that page's author. The call itself contains the password, so programs need no proof.
 */
export function maySignIn(headers: IncomingHttpHeaders, own: OwnAddress): boolean {
  const proof = proofIn(headers, own);
  return proof === "proven" || (proof === "unknown" && headers.referer === undefined);
}

/**
 * True if the request names this installation as its host: an address, `localhost` or a public name. Check it where the
 * caller's address alone gives access. By DNS rebinding, the host name of a foreign page resolves to this machine: its
 * calls come from a permitted address, but they name that host. Browsers always name a host.
 */
export function namesOwnHost({ host, publicNames }: Pick<OwnAddress, "host" | "publicNames">): boolean {
  if (host === "") return true;
  if (!URL.canParse(`http://${host}`)) return false;
  const { hostname } = new URL(`http://${host}`);
  const isAddress = isIP(hostname.replace(/^\[|\]$/g, "")) !== 0;
  return isAddress || hostname === "localhost" || publicNames.some((name) => name.toLowerCase() === hostname);
}

/**
 * Decides by headers whether a page of this installation sent the request. The Referer counts last: unlike the other
 * headers, it stays the same on a redirect over another site, and in a sandboxed frame.
 */
function proofIn(headers: IncomingHttpHeaders, own: OwnAddress): Proof {
  // Pages of other sites may add these headers only after a preflight, which is never allowed.
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
  // A proxy may have replaced the public name by its own. The same name on another port is another origin.
  return (
    from.hostname !== hostname && from.protocol === "https:" && from.port === "" && publicNames.includes(from.hostname)
  );
}
