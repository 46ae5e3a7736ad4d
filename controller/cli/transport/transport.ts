import type { Agent, ClientRequest, IncomingMessage, RequestOptions } from "node:http";
import type { Fetch, FetchInit, FetchResponse } from "../../../common/client/index.ts";
import { CLI_CONNECT_MAX_MS, CLI_IDLE_CONNECTION_MS } from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";
import { closedError, UnconnectedError } from "./failures.ts";
import { isLoopback } from "./loopback.ts";
import { responseOf } from "./response.ts";
import { sendBody } from "./upload.ts";

type Protocol = "http:" | "https:";

interface Requester {
  readonly request: (url: URL, options: RequestOptions) => ClientRequest;
  readonly agent: Agent;
}

/**
 * A `fetch` over `node:http` and `node:https`. That of Node takes about 100 ms for its first call, which is most of the
 * time of a short command. For the client, both are the same: redirects are not followed, answers are decompressed, and
 * errors have the same texts. All calls share connections. An idle connection does not keep the process alive.
 */
export class Transport {
  readonly #clock: Pick<Clock, "after">;
  readonly #requesters = new Map<Protocol, Promise<Requester>>();

  constructor(clock: Pick<Clock, "after">) {
    this.#clock = clock;
  }

  readonly fetch: Fetch = async (url, init) => {
    const target = new URL(url);
    const protocol = target.protocol === "https:" ? "https:" : "http:";
    const { agent, request } = await this.#requester(protocol);
    if (Object.keys(agent.freeSockets).length > 0) await twoTurns();
    init.signal.throwIfAborted();
    const { method, headers } = init;
    const options = { method, agent, headers: { ...headersFor(target), ...headers }, joinDuplicateHeaders: true };
    return this.#answer(request(target, options), init, protocol === "https:" ? "secureConnect" : "connect");
  };

  #requester(protocol: Protocol): Promise<Requester> {
    const found = this.#requesters.get(protocol) ?? requesterOf(protocol);
    this.#requesters.set(protocol, found);
    return found;
  }

  #answer(request: ClientRequest, { signal, body, method }: FetchInit, connects: string): Promise<FetchResponse> {
    return new Promise<FetchResponse>((resolve, reject) => {
      const fail = (error: unknown): void => {
        reject(error as Error);
        request.destroy();
      };
      const leave = (): void => fail(signal.reason);
      signal.addEventListener("abort", leave, { once: true });
      const connection = this.#connection(request, connects, fail);
      request.on("error", (error) => reject(connection.isMade ? closedError(error) : new UnconnectedError(error)));
      request.once("close", () => {
        signal.removeEventListener("abort", leave);
        reject(closedError());
      });
      request.once("response", (response: IncomingMessage) => resolve(responseOf(response, { request, method })));
      sendBody(request, body, fail);
    });
  }

  /** Waits for the connection of a request, within its time. */
  #connection(request: ClientRequest, connects: string, fail: (error: Error) => void): { isMade: boolean } {
    const connection = { isMade: false };
    const late = new UnconnectedError(new Error(`no connection within ${CLI_CONNECT_MAX_MS} ms`));
    const cancel = this.#clock.after(CLI_CONNECT_MAX_MS, () => fail(late));
    const made = (): void => {
      connection.isMade = true;
      cancel();
    };
    request.once("socket", (socket) => (request.reusedSocket ? made() : socket.once(connects, made)));
    request.once("close", cancel);
    return connection;
  }
}

/** Loaded when needed: TLS takes as long to load as a call. */
async function requesterOf(protocol: Protocol): Promise<Requester> {
  const { Agent, request } = protocol === "https:" ? await import("node:https") : await import("node:http");
  return { request, agent: new Agent({ keepAlive: true, timeout: CLI_IDLE_CONNECTION_MS }) };
}

/** By then, the agent knows of a connection that the server closed behind its last answer: one turn reads the end. */
async function twoTurns(): Promise<void> {
  for (let turn = 0; turn < 2; turn++) await new Promise<void>((resolve) => setImmediate(resolve));
}

/** On one machine, compression takes longer than it saves. */
function headersFor({ hostname }: URL): Record<string, string> {
  const coding = isLoopback(hostname) ? "identity" : "gzip";
  return { "accept-encoding": coding, "cache-control": "no-cache", "user-agent": "odp" };
}
