import type { Peer } from "./peer.ts";

/** Scope in which browsers must use HTTPS: the name that they called, or also all names below it. */
export const HSTS_REACHES = ["off", "host", "subdomains"] as const;
export type HstsReach = (typeof HSTS_REACHES)[number];

/** With this policy, an answer that a browser shows as a page loads, runs and sends nothing. */
const CLOSED = "default-src 'none'; base-uri 'none'; form-action 'none'";
const BARE = `${CLOSED}; frame-ancestors 'none'`;
/** Policy for content that users stored or exported. Clients show it in a frame of their page. */
export const CONTENT_POLICY = `${CLOSED}; frame-ancestors 'self'`;

const HEADERS = {
  "cache-control": "no-store",
  "x-content-type-options": "nosniff",
  "x-frame-options": "SAMEORIGIN",
  "referrer-policy": "same-origin",
  "content-security-policy": BARE,
  "cross-origin-resource-policy": "same-origin",
};

const HSTS: Readonly<Record<HstsReach, string | undefined>> = {
  off: undefined,
  host: "max-age=31536000",
  subdomains: "max-age=31536000; includeSubDomains",
};

/** Headers for browsers in every answer. An answer that sets one of them itself keeps its own. */
export function browserHeaders(protocol: Peer["protocol"], hsts: HstsReach): Readonly<Record<string, string>> {
  const text = HSTS[hsts];
  // Browsers accept this header only over HTTPS (RFC 6797, 8.1).
  return protocol === "https" && text !== undefined ? { ...HEADERS, "strict-transport-security": text } : HEADERS;
}

/** The same headers as lines of a head that is written by hand, each with its line break. */
export const BROWSER_LINES = Object.entries(HEADERS)
  .map(([name, value]) => `${name}: ${value}\r\n`)
  .join("");

/** Headers of odp's own pages. They deny access to functions of the device, which no page uses. */
export function pageHeaders(policy: string): Readonly<Record<string, string>> {
  return {
    "content-security-policy": policy,
    "permissions-policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
  };
}
