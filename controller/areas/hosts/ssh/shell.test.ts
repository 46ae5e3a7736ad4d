import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { SSH_COMMAND_MAX_BYTES } from "../../../../common/limits.ts";
import { giftsText, quoted, scriptOf } from "./shell.ts";

const HOSTILE = [
  "plain",
  "",
  "it's",
  "'; touch /tmp/odp-injected; '",
  "$(id)",
  "`id`",
  "${HOME}",
  "a\\",
  "\\'",
  'say "no"',
  "two\nlines",
  "-rf",
  "*",
  "~",
  "a;b&c|d>e<f",
  "!!",
  "\u00e4\u4e3b",
];

function said(script: string): string {
  return execFileSync("/bin/sh", ["-c", script], { encoding: "utf8" });
}

test("a quoted text reaches the program as it is, whatever a shell would make of it", () => {
  expect(
    said(`printf '%s\\0' ${HOSTILE.map(quoted).join(" ")}`)
      .split("\0")
      .slice(0, -1),
  ).toEqual(HOSTILE);
});

test("a folder is a folder, and the value of a variable its value", () => {
  expect(said(scriptOf("pwd", "/tmp/../tmp"))).toBe("/tmp\n");
  expect(() => said(`exec 2>/dev/null; ${scriptOf("echo ran", "/nowhere'; echo injected; '")}`)).toThrow();
  expect(() => giftsText({ environment: { "A=b;id": "x" } })).toThrow("no name of an environment variable");
});

test("variables and input beyond what the host takes are refused, each by itself", () => {
  const most = "x".repeat(SSH_COMMAND_MAX_BYTES);
  expect(() => giftsText({ environment: { A: most } })).toThrow("the variables of a command have at most");
  expect(() => giftsText({ input: Buffer.from(`${most}x`) })).toThrow("the input of a command has at most");
  expect(giftsText({ environment: { A: "1" }, input: Buffer.from(most) })).toMatch(/^,export A='1'\n<x{800}\n/);
});
