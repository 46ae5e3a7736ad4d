import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { describe, expect, test } from "vitest";
import { produced, http, session, port, useWire, open, exchange } from "../../../test/helpers/http/wire-world.ts";

useWire();

describe("streams", () => {
  test("an error after the head ends the connection instead of a false end", async () => {
    const request = httpRequest({ port, path: `/stream?failAfter=5&sessionid=${session}` });
    request.end();
    const [response] = (await once(request, "response")) as [NodeJS.ReadableStream];
    let text = "";
    const reading = (async () => {
      for await (const chunk of response) text += String(chunk);
    })();
    await expect(reading).rejects.toThrow("aborted");
    expect(text.startsWith(`{"status":"ok","message":[`)).toBe(true);
    expect(() => JSON.parse(text) as unknown).toThrow();
  });

  test("who does not read is not produced for, and who goes away ends the production", async () => {
    const socket = await open();
    socket.pause();
    socket.write(`GET /stream?failAfter=100000&sessionid=${session} HTTP/1.1\r\nHost: x\r\n\r\n`);
    await expect.poll(() => produced.pages).toBeGreaterThan(0);
    // Socket buffers on both sides hold some megabytes; ten gigabytes would come without back-pressure.
    let before = -1;
    await expect
      .poll(
        () => {
          const still = produced.pages === before;
          before = produced.pages;
          return still;
        },
        { interval: 200 },
      )
      .toBe(true);
    expect(produced.pages).toBeLessThan(500);
    socket.destroy();
    await expect.poll(() => produced.ended).toBe(true);
    expect(produced.aborted).toBe("cancelled");
  });

  test("HEAD of a long answer is a head, and nothing is produced for it", async () => {
    const answer = await exchange(
      `HEAD /stream?failAfter=100000&sessionid=${session} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK/);
    expect(answer.endsWith("\r\n\r\n")).toBe(true);
    await expect.poll(() => produced.ended).toBe(true);
    expect(produced.pages).toBeLessThan(500);
  });

  test("a handler is told when its client goes away", async () => {
    produced.aborted = undefined;
    const socket = await open();
    socket.write(`GET /wait?sessionid=${session} HTTP/1.1\r\nHost: x\r\n\r\n`);
    await expect
      .poll(async () => (await http.app.inject({ url: "/metrics" })).body)
      .toContain(`odp_http_calls_in_flight{tenant="matrix"} 1`);
    socket.destroy();
    await expect.poll(() => produced.aborted).toBe("cancelled");
    await expect
      .poll(async () => (await http.app.inject({ url: "/metrics" })).body)
      .not.toContain(`odp_http_calls_in_flight{tenant="matrix"}`);
  });
});
