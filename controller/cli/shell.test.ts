import { PassThrough, Readable } from "node:stream";
import { expect, test } from "vitest";
import { AppError } from "../../common/errors.ts";
import { realClock } from "../../test/helpers/time/clock.ts";
import { ContextFile } from "./contexts/file.ts";
import { secretLine } from "./contexts/secret.ts";
import type { CommonWords } from "./declared/program.ts";
import { UsageError } from "./declared/usage.ts";
import { CANCELLED, failureCode, failureText } from "./failure.ts";
import { ProcessShell } from "./shell.ts";

function shellWith(listeners: Set<() => void>, signals: ReadonlySet<string>, common: CommonWords = {}): ProcessShell {
  return new ProcessShell(
    {
      ...{ version: "1.2.3", environment: {}, platform: "linux", clock: realClock, random: { next: () => 0.5 } },
      zoneName: () => "UTC",
      fetch: () => Promise.reject(new Error("no calls are expected")),
      pager: undefined,
      contexts: new ContextFile("/nowhere/contexts.json", "linux"),
      output: { write: () => Promise.resolve(true) },
      ...{ stdin: new PassThrough(), stdout: { write: () => true }, stderr: { write: () => true } },
      isReaderGone: () => Promise.resolve(false),
      on: (signal, listener) => signals.has(signal) && listeners.add(listener),
      off: (signal, listener) => signals.has(signal) && listeners.delete(listener),
    },
    common,
  );
}

test.each([
  { output: "name", fields: "host" },
  { output: "csv", json: true },
  { utc: true, zone: "Europe/Oslo" },
  { fields: "host,,status" },
] as const)("options of which one had no effect are refused: %j", (common) => {
  expect(() => shellWith(new Set(), new Set(), common)).toThrow(UsageError);
});

test.each(["SIGINT", "SIGTERM"])("the first %s ends the calls of a command, and a second one the process", (name) => {
  const listeners = new Set<() => void>();
  const shell = shellWith(listeners, new Set([name]));
  const ended = shell.ended();
  expect([shell.ended() === ended, listeners.size, ended.aborted]).toEqual([true, 1, false]);
  for (const listener of listeners) listener();
  expect([listeners.size, ended.aborted]).toEqual([0, true]);
});

test("Ctrl-C is for the editor or pager while one runs; SIGTERM still ends the command", async () => {
  const [keys, terms] = [new Set<() => void>(), new Set<() => void>()];
  const shell = shellWith(keys, new Set(["SIGINT"]));
  const ended = shell.ended();
  await shell.undisturbed(() => {
    for (const listener of keys) listener();
    return Promise.resolve(keys.size);
  });
  expect([ended.aborted, keys.size]).toEqual([false, 1]);
  for (const listener of keys) listener();
  expect(ended.aborted).toBe(true);

  const other = shellWith(terms, new Set(["SIGTERM"]));
  const stopped = other.ended();
  await other.undisturbed(() => Promise.resolve(terms.forEach((listener) => listener())));
  expect(stopped.aborted).toBe(true);
});

test("a failure says what to do next, and obeys nothing that a controller sends", () => {
  expect(failureText(new AppError("stale", "It was changed."))).toMatch(
    /^odp: It was changed\.\nAnother user was faster/,
  );
  expect(failureText(new AppError("invalid", "a\u001b[2J\nb"))).toBe("odp: a\\u001b[2J\nb");
  expect([failureCode(new AppError("cancelled", "")), failureCode(new Error("x"))]).toEqual([CANCELLED, 1]);
});

test("a secret that is typed is not shown; Ctrl-C ends the question", async () => {
  const asked = (typed: string) => {
    let shown = "";
    const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode: () => undefined });
    const stderr = { write: (text: string) => (shown += text) };
    const line = secretLine("Password: ", { stdin, stderr, signal: new AbortController().signal });
    stdin.write(typed);
    return { line, shown: () => shown };
  };
  const typed = asked("kesr\u007ftrel\r");
  expect([await typed.line, typed.shown()]).toEqual(["kestrel", "Password: \n"]);
  await expect(asked("kes\u0003").line).rejects.toMatchObject({ code: "cancelled" });
  await expect(asked("\r").line).rejects.toThrow("Nothing was given.");
});

test("each question without a terminal takes the next line of the standard input; behind the last one is none", async () => {
  const stdin = Readable.from(["kestrel\r\nos", "lo\nrest"]);
  const ask = () => secretLine("?", { stdin, stderr: { write: () => true }, signal: new AbortController().signal });
  expect([await ask(), await ask(), await ask()]).toEqual(["kestrel", "oslo", "rest"]);
  await expect(ask()).rejects.toThrow("Nothing was given.");
});

test("a signal ends a question to a pipe that stays open", async () => {
  const ended = new AbortController();
  const line = secretLine("?", { stdin: new PassThrough(), stderr: { write: () => true }, signal: ended.signal });
  ended.abort();
  await expect(line).rejects.toMatchObject({ code: "cancelled" });
});
