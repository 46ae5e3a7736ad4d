import type { Clock, Random } from "../time.ts";

/** The parts of `fetch` that the client uses. */
export type Fetch = (url: string, init: FetchInit) => Promise<FetchResponse>;

export interface FetchInit {
  readonly method: string;
  readonly headers: Record<string, string>;
  readonly body?: string | Uint8Array<ArrayBuffer> | Blob | ReadableStream<Uint8Array>;
  /** For a body that is a stream. */
  readonly duplex?: "half";
  readonly signal: AbortSignal;
  readonly redirect: "manual";
  readonly credentials: "same-origin";
  readonly cache: "no-store";
}

export interface FetchResponse {
  readonly status: number;
  readonly headers: { get(name: string): string | null };
  readonly body: FetchBody | null;
}

/** The parts of a `ReadableStream` that the client uses. */
export interface FetchBody {
  getReader(): {
    read(): Promise<FetchRead>;
    cancel(): Promise<void>;
    releaseLock(): void;
  };
  cancel(): Promise<void>;
}

export type FetchRead =
  | { readonly done: false; readonly value: Uint8Array }
  | { readonly done: true; readonly value?: Uint8Array | undefined };

/** The parts of a `WebSocket` that the client uses. */
export interface Socket {
  onopen: ((event: never) => void) | null;
  onmessage: ((event: never) => void) | null;
  onclose: ((event: never) => void) | null;
  onerror: ((event: never) => void) | null;
  close(code?: number, reason?: string): void;
}

/** Opens a WebSocket with headers that sign in the caller; they are empty if the browser sends a cookie. */
export type OpenSocket = (url: string, headers: Readonly<Record<string, string>>) => Socket;

/** True in pages and workers of browsers, which send cookies by themselves and do not let programs set them. */
export function isBrowser(): boolean {
  return "document" in globalThis || "WorkerGlobalScope" in globalThis;
}

/** The clock of the platform. Its timers keep a program alive: a call under way is work. */
export const platformClock: Pick<Clock, "monotonicMs" | "after"> = {
  monotonicMs: () => performance.now(),
  after(delayMs, callback) {
    const timer = setTimeout(callback, delayMs);
    return () => clearTimeout(timer);
  },
};

export const platformRandom: Pick<Random, "next"> = {
  next: () => (crypto.getRandomValues(new Uint32Array(1))[0] ?? 0) / 2 ** 32,
};

interface Global {
  readonly WebSocket?: new (url: string, options?: object) => Socket;
  readonly process?: { readonly versions?: { readonly node?: string } };
}

/** The WebSocket of the platform; `undefined` in Node 20. That of Node takes headers, those of browsers do not. */
export function platformSocket(): OpenSocket | undefined {
  const { WebSocket, process } = globalThis as Global;
  if (WebSocket === undefined) return undefined;
  const takesHeaders = process?.versions?.node !== undefined && !isBrowser();
  return (url, headers) => (takesHeaders ? new WebSocket(url, { headers }) : new WebSocket(url));
}

/** True if `fetch` sends a body that is a stream. A browser that does not takes it for a text and asks for its type. */
export function sendsStreams(): boolean {
  let isAsked = false;
  const probe = {
    method: "POST",
    body: new ReadableStream(),
    get duplex() {
      isAsked = true;
      return "half";
    },
  };
  try {
    const hasType = new Request("https://probe.invalid", probe as RequestInit).headers.has("content-type");
    return isAsked && !hasType;
  } catch {
    return false;
  }
}
