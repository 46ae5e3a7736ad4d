import { beforeEach, expect, test } from "vitest";
import { CLI_LINE_MAX_BYTES } from "../../common/limits.ts";
import { HostLines } from "./host-lines.ts";

let written: string[];
let lines: HostLines;
beforeEach(() => {
  written = [];
  lines = new HostLines((stream, data) => written.push(`${stream}|${Buffer.from(data).toString()}`));
});

test("lines of hosts that write at once are passed on whole, each with its host", () => {
  lines.add("h1", "stdout", Buffer.from("one\ntw"));
  lines.add("h2", "stdout", Buffer.from("un\n\ndeux"));
  lines.add("h1", "stderr", Buffer.from("oops\n"));
  lines.add("h1", "stdout", Buffer.from("o\n"));
  expect(written).toEqual([
    "stdout|h1: one\n",
    "stdout|h2: un\n",
    "stdout|h2: \n",
    "stderr|h1: oops\n",
    "stdout|h1: two\n",
  ]);
  lines.end();
  expect(written.at(-1)).toBe("stdout|h2: deux\n");
  lines.end();
  expect(written).toHaveLength(6);
});

test("a character that comes in two pieces is one character", () => {
  const [head, tail] = [Buffer.from("ü\n").subarray(0, 1), Buffer.from("ü\n").subarray(1)];
  lines.add("h", "stdout", head);
  lines.add("h", "stdout", tail);
  expect(written).toEqual(["stdout|h: ü\n"]);
});

test("output without newlines is passed on in pieces and not gathered", () => {
  for (let at = 0; at < 10; at++) lines.add("h", "stdout", Buffer.alloc(CLI_LINE_MAX_BYTES, "x"));
  expect(written).toHaveLength(10);
  lines.end();
  expect(written).toHaveLength(10);
});
