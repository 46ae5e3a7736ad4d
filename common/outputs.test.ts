import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { outliveOutput, type OutputProcess } from "./outputs.ts";

function program(terminals: Set<number>) {
  const [stdout, stderr, main] = [new EventEmitter(), new EventEmitter(), new EventEmitter()];
  const lost: string[] = [];
  const closed: number[] = [];
  const opened: string[] = [];
  const calls = {
    isatty: (descriptor: number) => terminals.has(descriptor),
    closeSync: (descriptor: number) => void closed.push(descriptor),
    openSync: (path: string) => opened.push(path),
  };
  outliveOutput(Object.assign(main, { stdout, stderr }) as OutputProcess, calls, (error) => lost.push(error.message));
  return { stdout, stderr, main, lost, closed, opened };
}

test("a program goes on after errors of its output, and hears of those of the standard output", () => {
  const { stdout, stderr, lost, closed } = program(new Set());
  stdout.emit("error", new Error("ENOSPC"));
  stderr.emit("error", new Error("EPIPE"));
  expect({ lost, closed }).toEqual({ lost: ["ENOSPC"], closed: [] });
});

test("a terminal that was closed is let go at the exit, and no earlier; one that is there stays", () => {
  const terminals = new Set([0, 1, 2]);
  const { main, stderr, closed, opened } = program(terminals);
  for (const one of [0, 2]) terminals.delete(one);
  stderr.emit("error", new Error("EIO"));
  main.emit("SIGHUP");
  expect(closed).toEqual([]);
  main.emit("exit");
  expect({ closed, opened }).toEqual({ closed: [0, 2], opened: ["/dev/null", "/dev/null"] });
});
