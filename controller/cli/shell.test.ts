import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { AppError } from "../../common/errors.ts";
import { realClock } from "../../test/helpers/time/clock.ts";
import { ContextFile } from "./contexts/file.ts";
import { secretLine } from "./contexts/secret.ts";
import { CANCELLED, failureCode, failureText } from "./failure.ts";
import { ProcessShell } from "./shell.ts";

test("the first signal ends the calls of a command, and a second one the process", () => {
  const listeners = new Set<() => void>();
  const shell = new ProcessShell(
    {
      ...{ environment: {}, platform: "linux", clock: realClock, random: { next: () => 0.5 } },
      zoneName: () => "UTC",
      contexts: new ContextFile("/nowhere/contexts.json", "linux"),
      output: { write: () => Promise.resolve(true) },
      ...{ stdin: new PassThrough(), stdout: { write: () => true }, stderr: { write: () => true } },
      on: (_signal, listener) => listeners.add(listener),
      off: (_signal, listener) => listeners.delete(listener),
    },
    {},
  );
  const ended = shell.ended();
  expect([shell.ended() === ended, listeners.size, ended.aborted]).toEqual([true, 1, false]);
  for (const listener of listeners) listener();
  expect([listeners.size, ended.aborted]).toEqual([0, true]);
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
