import { lookup } from "node:dns/promises";
import { AppError, errorText, isAppError } from "../../common/errors.ts";
import {
  SCRIPT_HTTP_AT_ONCE,
  SCRIPT_HTTP_DEADLINE_MS,
  SCRIPT_HTTP_MAX_BYTES,
  SCRIPT_HTTP_REDIRECTS_MAX,
  SCRIPT_HTTP_TENANT_AT_ONCE,
} from "../../common/limits.ts";
import type { Clock } from "../../common/time.ts";
import { OpenAddresses } from "./addresses.ts";
import { dial, type Dialled } from "./dial.ts";
import { exchange, type Exchange } from "./exchange.ts";
import type { OutboundAnswer, OutboundRequest, Resolve } from "./types.ts";

export interface OutboundOptions {
  /** Networks that are open in addition to public addresses. */
  readonly networks: readonly string[];
  /** False: only `networks` are open. Absent: true. */
  readonly isPublicOpen?: boolean | undefined;
  readonly clock: Clock;
  /** Absent: the resolver of the system. */
  readonly resolve?: Resolve;
}

const REDIRECTS = new Set([301, 302, 303, 307, 308]);
/** Headers that belong to the connection; those of a script are dropped. */
const OWN_HEADERS =
  /^(host|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|content-length|upgrade|expect)$/i;
/** Headers that a redirect to another origin drops: they are only for the server that the script named. */
const SECRET_HEADERS = /^(authorization|cookie)$/i;

/**
 * Requests of scripts to other servers. Only open addresses are allowed. Size, time, redirects and number are limited.
 */
export class Outbound {
  readonly #clock: Clock;
  readonly #open: OpenAddresses;
  readonly #resolve: Resolve;
  /** Number of requests in progress, by tenant. */
  readonly #underWay = new Map<string, number>();
  #total = 0;

  constructor({ networks, isPublicOpen, clock, resolve = (host) => lookup(host, { all: true }) }: OutboundOptions) {
    this.#clock = clock;
    this.#open = new OpenAddresses(networks, isPublicOpen);
    this.#resolve = resolve;
  }

  /**
   * The answer of the server with any status. Redirects are followed. Errors: `denied` for an address that is not
   * open, also that of a redirect; `invalid` for the method or a URL; `limited` with too many requests in progress;
   * `too_large` for the body or the number of redirects; `deadline` after `SCRIPT_HTTP_DEADLINE_MS`; `cancelled` by the
   * signal; `unavailable` without an answer.
   */
  async send(tenant: string, request: OutboundRequest, signal: AbortSignal): Promise<OutboundAnswer> {
    const first = checked(request);
    this.#enter(tenant);
    const late = new AbortController();
    const cancel = this.#clock.after(SCRIPT_HTTP_DEADLINE_MS, () => late.abort());
    try {
      return await this.#follow(first, AbortSignal.any([signal, late.signal]));
    } catch (error) {
      if (late.signal.aborted)
        throw new AppError("deadline", `http: no whole answer within ${SCRIPT_HTTP_DEADLINE_MS} ms.`);
      if (signal.aborted) throw new AppError("cancelled", "http: the script is over.");
      if (isAppError(error)) throw error;
      throw new AppError("unavailable", `http: no answer of ${first.url.host}: ${errorText(error)}`);
    } finally {
      cancel();
      this.#leave(tenant);
    }
  }

  /**
   * True if a connection is accepted within `timeoutMs`. Errors: `denied` for an address that is not open; `limited`
   * with too many requests in progress; `cancelled` by the signal.
   */
  async dial(tenant: string, to: Dialled & { readonly timeoutMs: number }, signal: AbortSignal): Promise<boolean> {
    this.#enter(tenant);
    const late = new AbortController();
    const cancel = this.#clock.after(to.timeoutMs, () => late.abort());
    try {
      const both = AbortSignal.any([signal, late.signal]);
      const isTaken = await dial(to, { open: this.#open, resolve: this.#resolve, signal: both });
      if (signal.aborted) throw new AppError("cancelled", "dial: the script is over.");
      return isTaken;
    } finally {
      cancel();
      this.#leave(tenant);
    }
  }

  async #follow(first: Exchange, signal: AbortSignal): Promise<OutboundAnswer> {
    let next = first;
    for (let redirects = 0; redirects <= SCRIPT_HTTP_REDIRECTS_MAX; redirects++) {
      const answer = await exchange(next, {
        open: this.#open,
        resolve: this.#resolve,
        signal,
        max: { bytes: SCRIPT_HTTP_MAX_BYTES, limit: "SCRIPT_HTTP_MAX_BYTES" },
      });
      const { location } = answer.headers;
      if (!REDIRECTS.has(answer.status) || location === undefined) return answer;
      next = redirected(next, answer.status, location);
    }
    throw new AppError("too_large", `http: more than ${SCRIPT_HTTP_REDIRECTS_MAX} redirects.`, {
      details: { limit: "SCRIPT_HTTP_REDIRECTS_MAX" },
    });
  }

  #enter(tenant: string): void {
    const own = this.#underWay.get(tenant) ?? 0;
    if (own >= SCRIPT_HTTP_TENANT_AT_ONCE || this.#total >= SCRIPT_HTTP_AT_ONCE) {
      const limit = own >= SCRIPT_HTTP_TENANT_AT_ONCE ? "SCRIPT_HTTP_TENANT_AT_ONCE" : "SCRIPT_HTTP_AT_ONCE";
      throw new AppError("limited", "http: too many requests of scripts are under way; try again later.", {
        details: { limit },
      });
    }
    this.#total++;
    this.#underWay.set(tenant, own + 1);
  }

  #leave(tenant: string): void {
    this.#total--;
    const left = (this.#underWay.get(tenant) ?? 1) - 1;
    if (left === 0) this.#underWay.delete(tenant);
    else this.#underWay.set(tenant, left);
  }
}

function checked({ method, url, headers = {}, body }: OutboundRequest): Exchange {
  const name = method.toUpperCase();
  if (!/^[A-Z]{1,20}$/.test(name) || name === "CONNECT" || name === "TRACE")
    throw new AppError("invalid", `http: ${method} is no method that is sent.`);
  const own = Object.entries(headers).filter(([header]) => !OWN_HEADERS.test(header));
  const sent: Record<string, string> = { "accept-encoding": "identity", ...Object.fromEntries(own) };
  if (body !== undefined) sent["content-length"] = String(Buffer.byteLength(body));
  return { method: name, url: webAddress(url), headers: sent, body };
}

function webAddress(text: string, from?: URL): URL {
  const url = URL.canParse(text, from?.href) ? new URL(text, from) : undefined;
  if (url && (url.protocol === "http:" || url.protocol === "https:")) return url;
  throw new AppError("invalid", `http: ${text} is no address that begins with http:// or https://.`);
}

/**
 * The request after a redirect, by the rules of browsers. After 303 (except for HEAD), and after 301 or 302 of a POST,
 * it is a GET without the body. Otherwise method and body stay.
 */
function redirected({ method, url, headers, body }: Exchange, status: number, location: string): Exchange {
  const to = webAddress(location, url);
  const becomesGet = (status === 303 && method !== "HEAD") || (status <= 302 && method === "POST");
  const kept = Object.entries(headers).filter(
    ([name]) => !(becomesGet && /^content-/i.test(name)) && !(to.origin !== url.origin && SECRET_HEADERS.test(name)),
  );
  const sent = Object.fromEntries(kept);
  return becomesGet
    ? { method: "GET", url: to, headers: sent, body: undefined }
    : { method, url: to, headers: sent, body };
}
