import { describe, expect, test } from "vitest";
import { HTTP_PIPELINED_AT_ONCE_MAX, HTTP_PIPELINED_MAX } from "../../../common/limits.ts";
import { LARGE, produced, session, useWire, open, exchange } from "../../../test/helpers/http/wire-world.ts";

useWire();

describe("calls that are sent before earlier ones are answered", () => {
  const call = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;

  test("are worked on as fast as their answers are read, and all answered in order", async () => {
    const socket = await open();
    socket.pause();
    const count = 100;
    produced.answers = 0;
    socket.write(call(`/large?sessionid=${session}`).repeat(count));
    await expect.poll(() => produced.answers).toBeGreaterThan(0);
    // The system takes some megabytes on both sides before anything has to wait.
    let before = -1;
    await expect
      .poll(
        () => {
          const still = produced.answers === before;
          before = produced.answers;
          return still;
        },
        { interval: 200 },
      )
      .toBe(true);
    expect(produced.answers).toBeLessThan(HTTP_PIPELINED_AT_ONCE_MAX + 30);
    let bytes = 0;
    socket.on("data", (chunk: Buffer) => (bytes += chunk.length)).resume();
    await expect.poll(() => bytes, { timeout: 30_000 }).toBeGreaterThan(count * LARGE.length);
    expect(produced.answers).toBe(count);
    socket.destroy();
  });

  test("are answered up to a bound, and the connection is closed in good order", async () => {
    const answer = await exchange(call("/healthz").repeat(HTTP_PIPELINED_MAX * 4));
    const answered = answer.match(/HTTP\/1\.1 200 OK/g)?.length ?? 0;
    expect(answered).toBeGreaterThanOrEqual(HTTP_PIPELINED_MAX);
    expect(answered).toBeLessThan(HTTP_PIPELINED_MAX * 4);
    expect(answer.match(/connection: close/gi)).toHaveLength(1);
  });
});
