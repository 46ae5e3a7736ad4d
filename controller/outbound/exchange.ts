import { request as plainRequest, type ClientRequest, type IncomingMessage, type RequestOptions } from "node:http";
import { request as secureRequest } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { AppError } from "../../common/errors.ts";
import { UTF8, type Encoding } from "../../common/text/encodings.ts";
import { decodeText } from "../../common/text/text-stream.ts";
import { charsetOf } from "../http/body/charset.ts";
import type { OpenAddresses } from "./addresses.ts";
import type { OutboundAnswer, Resolve } from "./types.ts";

export interface Exchange {
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
}

export interface ExchangeOptions {
  readonly open: Pick<OpenAddresses, "includes">;
  readonly resolve: Resolve;
  readonly signal: AbortSignal;
  /** Maximum number of bytes of the answer's body, and the name of that limit for the error. */
  readonly max: { readonly bytes: number; readonly limit: string };
}

/**
 * Sends one request on a connection of its own, to an open address. Redirects are not followed. `AppError("denied")`
 * for an address that is not open, `AppError("too_large")` for the body.
 */
export async function exchange(
  { method, url, headers, body }: Exchange,
  { open, resolve, signal, max }: ExchangeOptions,
): Promise<OutboundAnswer> {
  const host = url.hostname.replace(/^\[|\]$/g, "");
  // For an address instead of a name, `checkedLookup` is not called.
  if (isIP(host) !== 0 && !open.includes(host)) throw closed(host);
  const options: RequestOptions = { method, headers, agent: false, signal, lookup: checkedLookup(open, resolve) };
  const request = (url.protocol === "https:" ? secureRequest : plainRequest)(url, options);
  const response = await answered(request, body);
  return { status: response.statusCode ?? 0, headers: headersOf(response), data: await textOf(response, max) };
}

/**
 * A lookup for a socket that returns only open addresses. The socket connects to these addresses without a second
 * lookup, which could return others. `AppError("denied")` if no address of the name is open.
 */
export function checkedLookup(open: ExchangeOptions["open"], resolve: Resolve): LookupFunction {
  return (host, { all }, callback) => {
    const answer = async (): Promise<void> => {
      const found = (await resolve(host)).filter(({ address }) => open.includes(address));
      const [first] = found;
      if (!first) throw closed(host);
      if (all) callback(null, found);
      else callback(null, first.address, first.family);
    };
    answer().catch((error: unknown) => callback(error as NodeJS.ErrnoException, ""));
  };
}

function answered(request: ClientRequest, body: string | undefined): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    request.once("response", resolve);
    request.on("error", reject);
    // The server switches the connection to another protocol.
    request.once("upgrade", (_response, socket) => {
      socket.destroy();
      reject(new AppError("unavailable", "http: the server changed the protocol."));
    });
    request.end(body);
  });
}

async function textOf(response: IncomingMessage, { bytes: maxBytes, limit }: ExchangeOptions["max"]): Promise<string> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of response as AsyncIterable<Uint8Array>) {
    bytes += part.byteLength;
    if (bytes > maxBytes)
      throw new AppError("too_large", `http: the answer has more than ${maxBytes} bytes.`, { details: { limit } });
    parts.push(part);
  }
  return decodeText(Buffer.concat(parts), encodingOf(response)).text;
}

/** The charset of the answer; UTF-8 if the answer names none, or one that is not supported. */
function encodingOf({ headers }: IncomingMessage): Encoding {
  try {
    return charsetOf(headers["content-type"] ?? "") ?? UTF8;
  } catch {
    return UTF8;
  }
}

function headersOf({ headers }: IncomingMessage): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(headers).map(([name, value = ""]) => [name, [value].flat().join(", ")]));
}

export function closed(host: string): AppError {
  const text = `http: ${host} is no open address. An administrator opens networks by the setting outbound_networks.`;
  return new AppError("denied", text);
}
