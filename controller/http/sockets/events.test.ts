import { once } from "node:events";
import { request, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { Type } from "typebox";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  HTTP_CALL_DEADLINE_MS,
  HTTP_EVENT_STREAMS_PER_TENANT_MAX,
  HTTP_EVENTS_HEARTBEAT_MS,
  HTTP_SILENCE_CHECK_MS,
  HTTP_SILENCE_MS,
} from "../../../common/limits.ts";
import { openTestHttp, type TestHttp } from "../../../test/helpers/http/http-app.ts";
import { testPrincipal, TestClock, testRuntime } from "../../../test/helpers/time/runtime.ts";
import { checkInterface } from "../interface/check.ts";
import { endpoint, type Call, type Endpoint, type ServerEvent } from "../interface/endpoint.ts";
import { EventStreams } from "./events.ts";
import { documented } from "../interface/document/schemas.ts";
import { openApiDocument } from "../interface/openapi.ts";

/** Server-sent events: what an endpoint yields, to a reader who is there and may listen. */

const Told = Type.Object({ text: Type.String() });
const input = Type.Object({});
const opened = { method: "GET", permission: "objects:read", summary: "", input, output: Told, events: true } as const;
const LARGE = { data: { text: "x".repeat(65_536) } };

/** The source of one stream: holds its events, and records how the stream uses them. */
class Source {
  readonly #events: ServerEvent[] = [];
  #isOver = false;
  #wake: () => void = () => {};
  taken = 0;
  isLeft = false;

  tell(...events: readonly ServerEvent[]): void {
    this.#events.push(...events);
    this.#wake();
  }

  end(): void {
    this.#isOver = true;
    this.#wake();
  }

  async *events(signal: AbortSignal): AsyncGenerator<ServerEvent> {
    signal.addEventListener("abort", () => this.#wake());
    try {
      while (!signal.aborted) {
        for (let event = this.#events.shift(); event !== undefined; event = this.#events.shift()) {
          this.taken++;
          yield event;
        }
        if (this.#isOver) return;
        await new Promise<void>((resolve) => (this.#wake = resolve));
      }
    } finally {
      this.isLeft = true;
    }
  }
}

let source: Source;
let call: Call<unknown> | undefined;
const endpoints: readonly Endpoint[] = [
  endpoint({
    ...opened,
    path: "/events",
    handler: async (made) => {
      call = made;
      return { events: source.events(made.signal) };
    },
  }),
  endpoint({
    ...opened,
    path: "/others",
    permission: "objects:write",
    handler: async ({ signal }) => ({ events: source.events(signal) }),
  }),
  endpoint({
    method: "GET",
    path: "/plain",
    permission: "objects:read",
    summary: "",
    input,
    output: Type.String(),
    handler: async () => ({ message: "" }),
  }),
];

let http: TestHttp;
let clock: TestClock;
let session: string;
let port: number;

beforeEach(async () => {
  source = new Source();
  clock = new TestClock();
  http = await openTestHttp({ endpoints, runtime: testRuntime(clock), settings: { callsInFlightMax: 1 } });
  session = await http.signIn("admin");
  await http.app.listen({ port: 0, host: "127.0.0.1" });
  port = (http.app.server.address() as AddressInfo).port;
});
afterEach(async () => {
  http.app.server.closeAllConnections();
  await http[Symbol.asyncDispose]();
});

class Reader {
  text = "";
  /** How the stream came to its end, once it has. */
  end: "whole" | "broken" | undefined;
  readonly response: IncomingMessage;

  constructor(response: IncomingMessage) {
    this.response = response.setEncoding("utf8");
    response.on("data", (text: string) => (this.text += text));
    response.on("end", () => (this.end ??= "whole"));
    response.on("error", () => (this.end = "broken"));
  }

  async reads(text: string | RegExp): Promise<void> {
    await expect.poll(() => this.text).toMatch(text);
  }
}

async function listen(headers: Record<string, string> = {}, path = `/events?sessionid=${session}`): Promise<Reader> {
  const sent = request({ port, path, headers, agent: false });
  sent.on("error", () => {});
  sent.end();
  const [response] = (await once(sent, "response")) as [IncomingMessage];
  return new Reader(response);
}

/** A heartbeat more, and what it led to. */
async function beat(reader: Reader): Promise<void> {
  const before = reader.text.length;
  await expect
    .poll(() => {
      clock.advance(HTTP_EVENTS_HEARTBEAT_MS);
      return reader.end !== undefined || reader.text.length > before;
    })
    .toBe(true);
}

describe("a stream", () => {
  test("has each event with its id, its name and what the schema says of its data", async () => {
    const reader = await listen();
    source.tell({ id: "1", data: { text: "two\nlines", secret: 1 } }, { event: "end", data: { text: "" } });
    source.end();
    await expect.poll(() => reader.end).toBe("whole");
    expect(reader.text).toMatch(/^retry: \d+\n\n/);
    expect(reader.text.replace(/^retry: \d+\n\n/, "")).toBe(
      `id: 1\ndata: {"text":"two\\nlines"}\n\nevent: end\ndata: {"text":""}\n\n`,
    );
    expect(reader.response.headers).toMatchObject({ "content-type": "text/event-stream", "cache-control": "no-store" });
  });

  test("tells its handler the last event that a client has", async () => {
    await listen();
    expect(call?.client.lastEventId).toBeUndefined();
    await listen({ "last-event-id": "41" });
    expect(call?.client.lastEventId).toBe("41");
  });

  test("says within the interval that it is there, takes no place among the calls, and has no deadline", async () => {
    const reader = await listen();
    for (let passedMs = 0; passedMs <= HTTP_CALL_DEADLINE_MS; passedMs += HTTP_EVENTS_HEARTBEAT_MS) await beat(reader);
    await reader.reads(/(^|\n):\n\n:\n\n/);
    expect(await http.call(session, { url: "/plain" })).toMatchObject({ status: "ok" });
    source.tell({ data: { text: "still" } });
    await reader.reads("still");
  });

  test("that fails breaks off, so that nobody takes it for the end", async () => {
    const reader = await listen();
    source.tell({ id: "a\ndata: forged", data: { text: "" } });
    await expect.poll(() => reader.end).toBe("broken");
    expect(reader.text).not.toContain("forged");
    await expect.poll(() => source.isLeft).toBe(true);
  });
});

describe("a stream ends", () => {
  test("in good order when the controller stops, and the stop does not wait for it", async () => {
    const reader = await listen({ connection: "keep-alive" });
    source.tell({ id: "1", data: { text: "a" } });
    await reader.reads("id: 1");
    await http.app.close();
    await expect.poll(() => reader.end).toBe("whole");
    expect(source.isLeft).toBe(true);
  });

  test("when its reader goes away", async () => {
    const reader = await listen();
    reader.response.destroy();
    await expect.poll(() => source.isLeft).toBe(true);
    expect(call?.signal.aborted).toBe(true);
  });

  test("before the next event when its user is signed out", async () => {
    const reader = await listen();
    source.tell({ data: { text: "before" } });
    await reader.reads("before");
    await http.users.signOut(testPrincipal(), session);
    source.tell({ data: { text: "after" } });
    await expect.poll(() => reader.end).toBe("whole");
    expect(reader.text).not.toContain("after");
    expect(source.isLeft).toBe(true);
    expect(call?.signal.aborted).toBe(true);
  });

  test("by the next heartbeat when its user is signed out and there are no events", async () => {
    const reader = await listen();
    await reader.reads("retry");
    await http.users.signOut(testPrincipal(), session);
    await beat(reader);
    await expect.poll(() => reader.end).toBe("whole");
  });

  test("when its reader reads nothing, for whom little is made meanwhile", async () => {
    const reader = await listen();
    reader.response.pause();
    source.tell(...Array.from({ length: 2_000 }, () => LARGE));
    let before = -1;
    await expect
      .poll(
        () => {
          const isStill = source.taken === before;
          before = source.taken;
          return isStill && source.taken > 0;
        },
        { interval: 200 },
      )
      .toBe(true);
    // Systems hold some megabytes; all of it is 130.
    expect(source.taken).toBeLessThan(500);
    clock.advance(HTTP_SILENCE_MS + HTTP_SILENCE_CHECK_MS);
    await expect.poll(() => source.isLeft).toBe(true);
  });
});

describe("listening takes", () => {
  const ask = async (headers: Record<string, string>, path: string) => {
    const { response } = await listen(headers, path);
    return { status: response.statusCode, type: response.headers["content-type"] };
  };
  const FAILED = { status: 500, type: "application/json; charset=utf-8" };
  const OPEN = { status: 200, type: "text/event-stream" };

  test("the permission", async () => {
    const viewer = await http.signIn("viewer");
    expect(await ask({}, `/others?sessionid=${viewer}`)).toEqual(FAILED);
    expect(await ask({}, `/others?sessionid=${session}`)).toEqual(OPEN);
    expect(await ask({}, "/events")).toEqual({ ...FAILED, status: 200 });
  });

  test("proof that no page of another site asks, and leaves a record where it is missing", async () => {
    const cookie = `matrixSession=${session}`;
    expect(await ask({ cookie, origin: "https://elsewhere.example" }, "/events")).toEqual(FAILED);
    expect(await ask({ cookie, "sec-fetch-site": "cross-site" }, "/events")).toEqual(FAILED);
    const denied = http.trail.records.filter(({ action, outcome }) => action === "GET /events" && outcome === "denied");
    expect(denied).toHaveLength(2);
    expect(await ask({ cookie, "sec-fetch-site": "same-origin" }, "/events")).toEqual(OPEN);
  });

  test("a place among the streams of the tenant, which others do not take", () => {
    const streams = new EventStreams();
    const leave = Array.from({ length: HTTP_EVENT_STREAMS_PER_TENANT_MAX }, () => streams.enter("a", () => {}))[0];
    expect(() => streams.enter("a", () => {})).toThrow("too many");
    streams.enter("b", () => {});
    leave?.();
    streams.enter("a", () => {});
  });
});

test("HEAD of a stream is a head, and no source is opened", async () => {
  const { statusCode, body } = await http.app.inject({ method: "HEAD", url: `/events?sessionid=${session}` });
  expect([statusCode, body]).toEqual([200, ""]);
  expect([source.taken, source.isLeft]).toEqual([0, false]);
});

test("events for strangers, or as an answer to a change, are refused before anything listens", () => {
  const handler = async () => ({ events: source.events(AbortSignal.abort()) });
  const listening = { ...opened, path: "/x", handler };
  expect(() => checkInterface([endpoint(listening)], [])).not.toThrow();
  expect(() => checkInterface([endpoint({ ...listening, permission: "public" })], [])).toThrow("events");
  expect(() => checkInterface([endpoint({ ...listening, method: "POST" })], [])).toThrow("events");
});

test("the document tells the type, the data and the header", () => {
  const document = openApiDocument(endpoints, { version: "0" });
  const events = ["paths", "/events", "get"];
  expect(document).toHaveProperty(
    [...events, "responses", "200", "content", "text/event-stream", "schema", "x-item-schema"],
    documented(Told),
  );
  expect(document).toHaveProperty([...events, "parameters", "0", "name"], "Last-Event-ID");
  expect(JSON.stringify(document).match(/Last-Event-ID/g)).toHaveLength(2);
});
