import { once, setMaxListeners } from "node:events";
import { connect, type AddressInfo } from "node:net";
import { PassThrough } from "node:stream";
import { describe, expect, test } from "vitest";
import {
  STRANGER_CALLS_IN_FLIGHT_MAX,
  STRANGER_CALLS_WAITING_MAX,
  WEBSOCKET_PIECE_BYTES,
  WEBSOCKET_RECEIVED_MAX_BYTES,
} from "../../../common/limits.ts";
import { openTestHttp } from "../../../test/helpers/http/http-app.ts";
import { BodyMemory } from "../body/memory.ts";
import { takeInTurns } from "../connections/incoming.ts";
import { http, session, useWire, exchange } from "../../../test/helpers/http/wire-world.ts";

useWire();

describe("connections", () => {
  test("two Host headers are refused, for sockets too", async () => {
    expect(await exchange("GET /healthz HTTP/1.1\r\nHost: x\r\nhost: y\r\n\r\n")).toMatch(
      /^HTTP\/1\.1 400 .*more than one Host header/s,
    );
    const upgrade =
      "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n";
    expect(await exchange(`GET /any HTTP/1.1\r\nHost: x\r\nHost: x\r\n${upgrade}\r\n`)).toContain(
      "more than one Host header",
    );
  });

  test("a request whose length is said in two ways is refused, and nothing behind it is taken for another", async () => {
    const call = (more: string) => `POST /echo?sessionid=${session} HTTP/1.1\r\nHost: x\r\n${more}\r\n`;
    const hidden = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    for (const more of [
      "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
      "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
      "Content-Length: 4\r\nContent-Length: 5\r\n",
      "Content-Length: 4, 5\r\n",
      "Content-Length: +4\r\n",
      "Transfer-Encoding: chunked, identity\r\n",
      "Transfer-Encoding : chunked\r\n",
    ]) {
      const answer = await exchange(`${call(more)}0\r\n\r\n${hidden}`);
      expect(answer.match(/^HTTP\/1\.1 \d+/gm), more).toEqual(["HTTP/1.1 400"]);
    }
  });

  test("an early answer reaches a client that asked for the end of the connection and still sends", async () => {
    const socket = connect((http.app.server.address() as AddressInfo).port, "127.0.0.1");
    const rest = 4_000_000;
    const seen = { answer: "", sent: false, error: undefined as unknown, endedAfter: undefined as boolean | undefined };
    socket.on("data", (data: Buffer) => (seen.answer += data.toString()));
    socket.on("error", (error) => (seen.error = error));
    socket.on("end", () => (seen.endedAfter = seen.sent));
    socket.write(`POST /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: ${100_000 + rest}\r\n\r\n`);
    socket.write("x".repeat(100_000));
    await expect.poll(() => seen.answer).toContain('"status":"signin"');
    socket.write("x".repeat(rest), () => (seen.sent = true));
    await expect.poll(() => seen.endedAfter ?? seen.error).toBe(true);
    expect(seen.answer.match(/HTTP\/1\.1/g)).toHaveLength(1);
  });

  test("a head that does not arrive ends the connection when its deadline is over", async () => {
    await using impatient = await openTestHttp({ settings: { deadlines: { headMs: 100 } } });
    await impatient.app.listen({ port: 0, host: "127.0.0.1" });
    const socket = connect((impatient.app.server.address() as AddressInfo).port, "127.0.0.1");
    socket.write("GET /healthz HTTP/1.1\r\nHost:");
    const [answer] = (await Promise.race([once(socket, "data"), once(AbortSignal.timeout(20_000), "abort")])) as [
      unknown,
    ];
    expect(String(answer)).toMatch(/^HTTP\/1\.1 408 /);
    socket.destroy();
  });

  test("strangers of one address take no place of others", async () => {
    const gone = new AbortController();
    setMaxListeners(0, gone.signal);
    const ask = (remoteAddress: string) =>
      http.app.inject({ url: "/stranger", remoteAddress, signal: gone.signal }).catch(() => undefined);
    const many = Array.from({ length: STRANGER_CALLS_IN_FLIGHT_MAX + STRANGER_CALLS_WAITING_MAX }, (_, at) =>
      ask(`2001:db8::${at.toString(16)}`),
    );
    await expect
      .poll(
        async () =>
          (await http.app.inject({ url: "/open", remoteAddress: "2001:db8::ffff" })).json<{ code?: string }>().code,
      )
      .toBe("limited");
    expect((await http.app.inject({ url: "/open", remoteAddress: "2001:db8:0:1::1" })).json()).toMatchObject({
      status: "ok",
    });
    expect((await http.app.inject({ url: "/open", remoteAddress: "192.0.2.1" })).json()).toMatchObject({
      status: "ok",
    });
    gone.abort();
    await Promise.all(many);
  });

  test("what a socket says is held up to the end of its message, and refused where there is no memory for it", async () => {
    const source = new PassThrough();
    const memory = new BodyMemory(1);
    let refused = 0;
    const turn = (): Promise<void> => Promise.resolve();
    takeInTurns(source, { turn, memory: memory.open("192.0.2.1"), onRefused: () => refused++ });
    // Frames that belong to no message, as pings, count for no more than the longest message.
    source.write(Buffer.alloc(2 * WEBSOCKET_RECEIVED_MAX_BYTES));
    await expect.poll(() => memory.bytes).toBe(WEBSOCKET_RECEIVED_MAX_BYTES);
    memory.open("192.0.2.1").hold(400 * 1_024);
    source.write(Buffer.alloc(WEBSOCKET_RECEIVED_MAX_BYTES));
    await expect.poll(() => refused).toBe(1);
    expect(source.isPaused()).toBe(true);
    source.destroy();
    await expect.poll(() => memory.bytes).toBe(400 * 1_024);
  });

  test("what a socket says is taken in pieces, one in a turn, in order, and no more is read meanwhile", async () => {
    const source = new PassThrough();
    const turns: (() => void)[] = [];
    const taken: Buffer[] = [];
    source.on("data", (piece: Buffer) => taken.push(piece));
    const memory = new BodyMemory();
    const turn = (): Promise<void> => new Promise((resolve) => turns.push(resolve));
    const ended = takeInTurns(source, { turn, memory: memory.open("192.0.2.1"), onRefused: () => {} });
    const sent = Buffer.from(Array.from({ length: WEBSOCKET_PIECE_BYTES * 3 + 1 }, (_, at) => at % 251));
    source.write(sent.subarray(0, WEBSOCKET_PIECE_BYTES + 1));
    source.write(sent.subarray(WEBSOCKET_PIECE_BYTES + 1));
    await expect.poll(() => turns.length).toBe(1);
    expect(source.isPaused()).toBe(true);
    while (Buffer.concat(taken).length < sent.length) {
      const pieces = taken.length;
      await expect.poll(() => turns.length).toBe(1);
      turns.shift()?.();
      await expect.poll(() => taken.length).toBe(pieces + 1);
    }
    expect(Buffer.concat(taken).equals(sent)).toBe(true);
    expect(Math.max(...taken.map(({ length }) => length))).toBe(WEBSOCKET_PIECE_BYTES);
    expect(memory.bytes).toBe(sent.length);
    ended();
    expect(memory.bytes).toBe(0);
  });
});
