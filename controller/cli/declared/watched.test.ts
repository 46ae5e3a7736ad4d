import { expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import type { Clock } from "../../../common/time.ts";
import { ContextFile } from "../contexts/file.ts";
import { ProcessShell } from "../shell.ts";
import { Call } from "./call.ts";
import { UsageError } from "./usage.ts";
import { watched } from "./watched.ts";

interface Options {
  readonly terminal?: { readonly columns: number; readonly rows: number };
  /** Number of the answer after which the reader of the output is gone. */
  readonly isGoneAfter?: number;
  /** Number of the round after which the reader is known to be gone without a write. */
  readonly isKnownGoneAfter?: number;
}

/** Gives one answer after the other, and then Ctrl-C. */
async function watching(
  answers: readonly unknown[],
  { terminal, isGoneAfter = Infinity, isKnownGoneAfter = Infinity }: Options = {},
) {
  let [out, err, writes, rounds] = ["", "", 0, 0];
  /** True once the reader was looked for while it was there. */
  let isSeen = false;
  const pausesMs: number[] = [];
  const clock: Clock = {
    nowMs: () => Date.UTC(2026, 0, 2, 3, 4, 5, 678),
    monotonicMs: () => 0,
    after(delayMs, callback) {
      pausesMs.push(delayMs);
      queueMicrotask(callback);
      return () => undefined;
    },
  };
  let interrupt = (): void => undefined;
  const write = (data: string | Uint8Array): Promise<boolean> => {
    out += Buffer.from(data).toString();
    return Promise.resolve(++writes < isGoneAfter);
  };
  const shell = new ProcessShell(
    {
      ...{
        version: "1.2.3",
        environment: {},
        platform: "linux",
        clock,
        random: { next: () => 0.5 },
        zoneName: () => "UTC",
        fetch: () => Promise.reject(new Error("no calls are expected")),
        pager: undefined,
      },
      ...{ contexts: new ContextFile("/nowhere/contexts.json", "linux"), output: { write } },
      stdin: process.stdin,
      stdout: { ...(terminal && { isTTY: true, ...terminal }), write: () => true },
      stderr: { write: (data) => (err += Buffer.from(data).toString()) },
      isReaderGone: () => Promise.resolve((isSeen ||= writes === 0) && rounds >= isKnownGoneAfter),
      on: (_signal, listener) => (interrupt = listener),
      off: () => undefined,
    },
    {},
  );
  const exit = await watched(new Call({ watch: "3" }, shell), async (call) => {
    const answer = answers[rounds++];
    if (answer instanceof Error) throw answer;
    if (rounds > answers.length) interrupt();
    else await call.shell.show(answer);
    if (rounds === 1) call.shell.note("a note");
  }).catch((error: unknown) => error);
  return { out, err, exit, pausesMs: new Set(pausesMs), rounds };
}

const UNREACHED = new AppError("unavailable", "No controller answers.");

test("a pipe gets each answer that differs from the one before, and Ctrl-C ends with 130", async () => {
  const { out, err, exit, pausesMs } = await watching(["a", "a", "b", "a"]);
  expect([out, err, exit, pausesMs]).toEqual(["a\nb\na\n", "a note\n", 130, new Set([3_000])]);
});

test("a controller that is not reached is told once, and asked again", async () => {
  const { out, err, exit } = await watching([UNREACHED, UNREACHED, "a", UNREACHED, "a"]);
  expect([out, exit]).toEqual(["a\n", 130]);
  expect(err).toMatch(
    /^odp: No controller answers\..* Trying again\.\nThe controller answers again\.\nodp: No .*\nThe .*\n$/,
  );
});

test("another failure ends the command, as does a reader that is gone", async () => {
  expect((await watching(["a", new AppError("denied", "No.")])).exit).toMatchObject({ code: "denied" });
  expect(await watching(["a", "b", "c"], { isGoneAfter: 2 })).toMatchObject({ exit: 0, rounds: 2 });
});

test("a reader that is gone ends the command also while the answer stays the same, or there is none", async () => {
  for (const answers of [
    ["a", "a", "a", "a"],
    ["a", UNREACHED, UNREACHED, UNREACHED],
  ])
    expect(await watching(answers, { isKnownGoneAfter: 3 })).toMatchObject({ exit: 0, rounds: 3, out: "a\n" });
});

test("a terminal shows the last answer with its time, as far as it has room, also while there is none", async () => {
  const terminal = { columns: 80, rows: 6 };
  const { out } = await watching([["a", "b", "c", "d"], UNREACHED], { terminal });
  const [first = "", second = ""] = out
    .split("\u001b[H\u001b[?7l")
    .slice(1)
    .map((screen) => screen.replaceAll("\u001b[K", "").replaceAll(/\u001b\[[\d;]*m/g, ""));
  expect(first).toBe("2026-01-02T03:04:05Z, every 3 s\n\nvalue\n-----\n(5 more lines)\n\u001b[J\u001b[?7h");
  expect(second).toMatch(
    /^2026-01-02T03:04:05Z: No controller answers\..*\n2026-01-02T03:04:05Z, every 3 s\n\nvalue\n/,
  );
});

test("a time between answers that is no number is refused", async () => {
  const call = new Call({ watch: "often" }, undefined as never);
  await expect(watched(call, () => Promise.resolve())).rejects.toBeInstanceOf(UsageError);
});
