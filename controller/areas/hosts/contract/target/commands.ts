import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { TargetSubject } from "./subject.ts";

/** Tests of command lines: shell, variables, input, output and exit code. */
export function commandsContract({ run, exec }: TargetSubject): void {
  it("runs a line by the host's shell and brings output, error output and code", async () => {
    const { outcome, out, err } = await exec('echo out; echo err >&2; true && echo "it\'s $((1+1))"');
    expect(outcome).toMatchObject({ state: "ok", code: 0, message: "" });
    expect(out).toBe("out\nit's 2\n");
    expect(err).toBe("err\n");
    expect(outcome.endedMs).toBeGreaterThanOrEqual(outcome.startedMs);
  });

  it("tells a failure with its code", async () => {
    expect((await exec("exit 3")).outcome).toMatchObject({ state: "failed", code: 3 });
    expect((await exec("no-such-program-anywhere")).outcome).toMatchObject({ state: "failed", code: 127 });
    expect((await exec("kill -KILL $$")).outcome).toMatchObject({ state: "failed", code: 137 });
  });

  it("brings every byte of large output once and in order", async () => {
    const { outcome, out } = await exec('i=0; while [ $i -lt 20000 ]; do echo "line $i"; i=$((i+1)); done');
    expect(outcome.state).toBe("ok");
    expect(out).toBe(Array.from({ length: 20_000 }, (_, at) => `line ${at}\n`).join(""));
  });

  it("sets variables, whatever is in them", async () => {
    const value = `a'b"c $HOME \\ \n;rm`;
    const { out } = await run({ kind: "exec", line: 'printf %s "$ODD"', environment: { ODD: value } });
    expect(out).toBe(value);
  });

  it("does not run a command that is for a user it cannot run it as, and names the user", async () => {
    const { outcome, out } = await run({ kind: "exec", line: "echo ran", user: "odp-is-not-there" });
    expect([outcome.state, out]).toEqual(["failed", ""]);
    expect(outcome.message).toContain("odp-is-not-there");
  });

  it("gives commands no input to wait for", async () => {
    expect((await exec("cat; echo done")).out).toBe("done\n");
  });

  it("gives a command its input, byte for byte, also one that does not read it", async () => {
    const all = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
    const input = Buffer.concat([
      all,
      Buffer.from("\\n %s <, . 'q' \"q\"\n"),
      Buffer.alloc(40_000, "0123456789ab\n"),
      all,
    ]);
    const line = "od -An -v -tx1 | tr -d ' \\n'";
    const { out } = await run({ kind: "exec", line, input });
    expect(out).toBe(input.toString("hex"));
    expect((await run({ kind: "exec", line: "cat; cat", input: Buffer.from("once") })).out).toBe("once");
    const unread = await run({ kind: "exec", line: "echo unread; exit 3", input });
    expect([unread.out, unread.err, unread.outcome.code]).toEqual(["unread\n", "", 3]);
  });
}

/** Tests of concurrent commands, with different ids and with the same id. */
export function concurrentCommandsContract({ folder, exec }: TargetSubject): void {
  it("runs a command id once, however often it is given", async () => {
    const file = join(folder(), "once");
    const commandId = `${Date.now()}-once`;
    const twice = await Promise.all([
      exec(`echo x >> ${file}; sleep 0.2`, { commandId }),
      exec(`echo x >> ${file}; sleep 0.2`, { commandId }),
    ]);
    expect(twice.map(({ outcome }) => outcome.state)).toEqual(["ok", "ok"]);
    expect(await readFile(file, "utf8")).toBe("x\n");
  });

  it("serves several commands at once", async () => {
    const all = await Promise.all(Array.from({ length: 8 }, (_, at) => exec(`echo ${at}`)));
    expect(all.map(({ out }) => out.trim())).toEqual(["0", "1", "2", "3", "4", "5", "6", "7"]);
  });
}
