import { lookup } from "node:dns/promises";
import { AppError } from "../../common/errors.ts";
import type { Clock } from "../../common/time.ts";
import { OpenAddresses } from "./addresses.ts";
import { exchange } from "./exchange.ts";
import type { Resolve } from "./types.ts";

export interface ServiceFetchOptions {
  /** URL of the service, from the settings. Its host and port are open even if the address is not public. */
  readonly home: URL;
  /** Networks that are open in addition to public addresses. */
  readonly networks: readonly string[];
  /** False: only `home` and `networks` are open. Absent: true. */
  readonly isPublicOpen?: boolean | undefined;
  readonly clock: Clock;
  readonly deadlineMs: number;
  readonly max: { readonly bytes: number; readonly limit: string };
  /** Absent: the resolver of the system. */
  readonly resolve?: Resolve;
}

export interface ServiceRequest {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

export type ServiceFetch = (url: string, request: ServiceRequest) => Promise<Response>;

/** Statuses of answers that have no body. */
const BODILESS = new Set([204, 205, 304]);
const EVERYWHERE = { includes: () => true };

/**
 * Creates the `fetch` for one service of the settings. It may also be called with URLs that the service returns; their
 * addresses must be open. Redirects are not followed. Each answer is limited in size, and in time
 * (`AppError("deadline")`).
 */
export function serviceFetch(options: ServiceFetchOptions): ServiceFetch {
  const { home, clock, deadlineMs, max, resolve = (host) => lookup(host, { all: true }) } = options;
  const open = new OpenAddresses(options.networks, options.isPublicOpen);
  return async (address, { method, headers, body }) => {
    const url = new URL(address);
    const text = body instanceof URLSearchParams || typeof body === "string" ? String(body) : undefined;
    const sent: Record<string, string> = { ...headers, "accept-encoding": "identity" };
    if (text !== undefined) sent["content-length"] = String(Buffer.byteLength(text));
    const late = new AbortController();
    const cancel = clock.after(deadlineMs, () => late.abort());
    try {
      const answer = await exchange(
        { method, url, headers: sent, body: text },
        { open: url.host === home.host ? EVERYWHERE : open, resolve, signal: late.signal, max },
      );
      const { status, headers: received, data } = answer;
      return new Response(BODILESS.has(status) ? null : data, { status, headers: received });
    } catch (error) {
      if (late.signal.aborted) throw new AppError("deadline", `${url.host} did not answer within ${deadlineMs} ms.`);
      throw error;
    } finally {
      cancel();
    }
  };
}
