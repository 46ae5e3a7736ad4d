import { expect, it } from "vitest";
import { JOB_ANSWER_MAX_BYTES, JOB_OUTPUT_MAX_BYTES, JOB_ROW_OUTPUT_MAX_BYTES } from "../../../../common/limits.ts";
import { RunOutput } from "./output.ts";

it("ends although more came after a write that failed", async () => {
  const failure = new Error("the store is away");
  const output = new RunOutput(() => Promise.reject(failure));
  output.take({ stderr: false, data: Buffer.from("before") });
  await new Promise((resolve) => setImmediate(resolve));
  output.take({ stderr: false, data: Buffer.from(" after") });
  // An endless loop would block everything, so the test checks a flag instead of hanging.
  expect(output.writing).toBe(false);
  expect(await output.finish()).toBe(failure);
  expect(output.text).toBe("before after");
});

it("counts what the host of a command did not send, in what it is told to be cut", async () => {
  const output = new RunOutput(() => Promise.resolve());
  output.take({ stderr: false, data: Buffer.from("out") });
  output.take({ stderr: true, data: Buffer.from("err") });
  const ended = { host: "h1", state: "ok", message: "", startedMs: 1, endedMs: 2 } as const;
  output.ended({ ...ended, outDropped: 100_000_000, errDropped: 5 });
  output.ended(ended);
  expect(await output.finish()).toBeUndefined();
  expect([output.bytes, output.kept]).toEqual([100_000_011, 6]);
  expect([output.out, output.err]).toEqual(["out\n[100000000 more bytes]", "err\n[5 more bytes]"]);
  expect(output.commands[0]).toEqual({ state: "ok", message: "", startedMs: 1, endedMs: 2, out: 3, err: 3 });
});

it("of 100 MB of bytes that are no text, each part holds as much as it may, and all are counted", async () => {
  let stored = 0;
  const output = new RunOutput((offset, { length }) => {
    expect(offset).toBe(stored);
    stored += length;
    return Promise.resolve();
  });
  const data = Buffer.alloc(65_536, 0xff);
  const pieces = 1_600;
  for (let n = 0; n < pieces; n++) output.take({ stderr: n % 2 === 0, data });
  expect(await output.finish()).toBeUndefined();
  expect([stored, output.kept, output.bytes]).toEqual([
    JOB_OUTPUT_MAX_BYTES,
    JOB_OUTPUT_MAX_BYTES,
    pieces * data.length,
  ]);
  for (const [text, mostBytes] of [
    [output.out, JOB_ROW_OUTPUT_MAX_BYTES],
    [output.err, JOB_ROW_OUTPUT_MAX_BYTES],
    [output.text, JOB_ANSWER_MAX_BYTES],
  ] as const)
    expect(text.replace(/\n\[\d+ more bytes\]$/, "")).toHaveLength(mostBytes);
});
