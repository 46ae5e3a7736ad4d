import { describe, expect, test } from "vitest";
import { exec, lineOf } from "./exec.ts";
import { exitCodeOf } from "./run-ends.ts";

describe("odp exec", () => {
  test("passes on the two streams apart and in order, and ends as the command did", async () => {
    const written: string[] = [];
    const asked: unknown[] = [];
    const code = await exec({
      client: {
        call: () => Promise.reject(new Error("nothing to cancel")),
        async *lines(_id: string, { query }: { readonly query: object }) {
          asked.push(query);
          yield { host: "vm", stream: "stdout", data: Buffer.from("out\n").toString("base64") };
          yield { host: "vm", stream: "stderr", data: Buffer.from("err\n").toString("base64") };
          yield await Promise.resolve({
            runid: "r",
            runs: [{ host: "vm", state: "failed", code: 2, message: "The command ended with code 2." }],
            skipped: 0,
          });
        },
      } as never,
      host: "vm",
      command: ["ls", "-la", "a b"],
      timeoutSeconds: 130,
      cancel: new AbortController().signal,
      leave: new AbortController().signal,
      write: (stream, data) => written.push(`${stream}:${Buffer.from(data).toString()}`),
    });
    expect({ code, written }).toEqual({ code: 2, written: ["stdout:out\n", "stderr:err\n"] });
    expect(asked).toEqual([
      { timeout: 130, param: JSON.stringify({ cmd: "ls -la 'a b'", "HOST!": "vm", timeout: 130 }) },
    ]);
  });

  test("on several hosts, each line is behind the name of its host, a recap follows, and the input is sent in a body", async () => {
    const written: string[] = [];
    const asked: unknown[] = [];
    const code = await exec({
      client: {
        call: () => Promise.reject(new Error("nothing to cancel")),
        async *lines(...call: unknown[]) {
          asked.push(...call.slice(0, 2));
          yield { host: "a", stream: "stdout", data: Buffer.from("one\n").toString("base64") };
          yield { host: "b", stream: "stdout", data: Buffer.from("two\n").toString("base64") };
          const runs = ["a", "b"].map((host) => ({ host, state: "ok", code: 0, message: "" }));
          yield await Promise.resolve({ runid: "r", runs, skipped: 0 });
        },
      } as never,
      host: "where:host in ('a', 'b')",
      command: ["sh"],
      timeoutSeconds: 1,
      input: Buffer.from("in"),
      cancel: new AbortController().signal,
      leave: new AbortController().signal,
      write: (stream, data) => written.push(`${stream}:${Buffer.from(data).toString()}`),
    });
    expect({ code, written }).toEqual({
      code: 0,
      written: [
        "stdout:a: one\n",
        "stdout:b: two\n",
        ...["a: ok", "b: ok", "2 hosts: 2 ok"].map((line) => `stderr:odp: ${line}\n`),
      ],
    });
    const given = { cmd: "sh", "HOST!": ["where:host in ('a', 'b')"], timeout: 1, "STDIN!": { base64: "aW4=" } };
    const path = { path: "remote_command@system/common" };
    expect(asked).toEqual(["postJobExecByPath", { path, body: { param: JSON.stringify(given), timeout: 1 } }]);
  });

  test("one argument is a line for the shell, several are passed on as typed", () => {
    expect(lineOf(["echo out; exit 2"])).toBe("echo out; exit 2");
    expect(lineOf(["--", "echo out; exit 2"])).toBe("echo out; exit 2");
    expect(lineOf(["--", "ls", "--"])).toBe("ls --");
    expect(lineOf(["echo", "$HOME", "it's", ""])).toBe(`echo '$HOME' 'it'\\''s' ''`);
  });

  test("the worst of several hosts is the exit code of the call", () => {
    const end = (state: string, code?: number) => ({
      host: "h",
      state,
      message: "",
      ...(code === undefined ? {} : { code }),
    });
    expect(exitCodeOf([end("ok", 0), end("ok", 0)])).toBe(0);
    expect(exitCodeOf([end("ok", 0), end("failed", 3)])).toBe(3);
    expect(exitCodeOf([end("timeout"), end("failed", 3)])).toBe(124);
    expect(exitCodeOf([end("unreachable"), end("cancelled")])).toBe(255);
    expect(exitCodeOf([end("failed")])).toBe(1);
  });

  test("a signal that ended the command is told, and is the exit code that a shell gives it", async () => {
    const notes: string[] = [];
    const killed = { state: "failed", signal: "SIGKILL" };
    const code = await exec({
      client: {
        call: () => Promise.reject(new Error("nothing to cancel")),
        async *lines() {
          yield await Promise.resolve({
            runs: [
              { ...killed, host: "a", code: 137, message: "ended by SIGKILL" },
              { ...killed, host: "b", message: "" },
            ],
            skipped: 0,
          });
        },
      } as never,
      host: "a",
      command: ["x"],
      timeoutSeconds: 1,
      cancel: new AbortController().signal,
      leave: new AbortController().signal,
      write: (_stream, data) => notes.push(Buffer.from(data).toString()),
    });
    expect({ code, notes }).toEqual({
      code: 137,
      notes: ["odp: a: failed: ended by SIGKILL\n", "odp: b: failed: SIGKILL: \n"],
    });
    expect(exitCodeOf([{ ...killed, host: "b", message: "" }])).toBe(137);
  });
});
