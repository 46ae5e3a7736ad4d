import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import { OdpClient, OdpError, type ClientOptions } from "../../../common/client/index.ts";

/** A client, its server, and the requests that have arrived. */
export interface ClientWorld {
  readonly requests: IncomingMessage[];
  readonly url: string;
  readonly server: Server;
  readonly client: OdpClient;
}

/** A client of a server that answers by `listener`; the client makes no pauses. The server ends with the test. */
export async function clientOf(listener: RequestListener, options: Partial<ClientOptions> = {}): Promise<ClientWorld> {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    requests.push(request);
    listener(request, response);
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { requests, url, server, client: new OdpClient({ url, random: { next: () => 0 }, token: "t", ...options }) };
}

export function send(
  response: ServerResponse,
  status: number,
  value: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(value));
}

export const problem = (code: string) => ({ type: `urn:odp:error:${code}`, code, detail: `It is ${code}.` });

/** The error that `work` fails with; fails if it succeeds, or with another kind of error. */
export const failure = (work: Promise<unknown>): Promise<OdpError> =>
  work.then(
    () => Promise.reject(new Error("It succeeded.")),
    (error: unknown) => (error instanceof OdpError ? error : Promise.reject(error as Error)),
  );
