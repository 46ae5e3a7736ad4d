import { describe, expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import { DISPATCH_GRACE_MS } from "../../../common/limits.ts";
import { JobOutputs } from "./output/outputs.ts";
import {
  admin,
  clock,
  stores,
  hosts,
  rows,
  published,
  runs,
  useJobs,
  define,
  remote,
  text,
  never,
  settled,
} from "../../../test/helpers/jobs/job-world.ts";

useJobs();

describe("an execution", () => {
  test("runs the command on the host, answers its output and leaves one row with the end", async () => {
    await define();
    hosts.behaviour = ({ onOutput }) => {
      onOutput?.(text("one\n"));
      onOutput?.(text("warn\n", true));
      onOutput?.(text("two\n"));
      return { code: 0 };
    };
    const execution = await runs.execute(admin, "backup@common/x", {});
    expect(await execution.finished).toEqual([
      { host: "h1", state: "ok", code: 0, message: "", output: "one\nwarn\ntwo\n" },
    ]);
    expect(hosts.sent).toMatchObject([
      { host: "h1", command: { kind: "exec", line: "run-backup" }, timeoutMs: 60_000 },
    ]);
    expect(rows.of("h1")).toMatchObject([
      {
        class: "/matrix/jobs/jobrun",
        runid: execution.runId,
        name: "backup@common/x",
        status: "ok",
        code: 0,
        out: "one\ntwo\n",
        err: "warn\n",
        source: "administrator",
        outputsize: 13,
      },
    ]);
    expect(rows.of("h1")[0]?.["sid"]).toMatch(/^M\d{12}:\d+$/);
    const run = { runId: execution.runId, host: "h1" };
    const part = await new JobOutputs(stores).read("matrix", run, { offset: 4, maxBytes: 100 });
    expect(new TextDecoder().decode(part.bytes)).toBe("warn\ntwo\n");
    expect((await new JobOutputs(stores).read("other", run, { offset: 0, maxBytes: 100 })).size).toBe(0);
  });

  test("is on record as running before its end, and says start and end on the subject jobrun", async () => {
    hosts.behaviour = never;
    const { runId } = await remote({ cmd: "sleep", "HOST!": "h1" });
    await settled();
    expect(rows.of("h1")).toMatchObject([{ status: "running", cmds: ["sleep"], name: "remote_command@system/common" }]);
    expect(published).toMatchObject([
      { subject: "jobrun", source: "h1", title: "remote_command@system/common", keyspace: "/matrix" },
    ]);
    expect(JSON.parse(published[0]?.msg ?? "")).toMatchObject({ runid: runId, status: "running" });
  });

  test("ends as timeout by its deadline even when the host says nothing at all", async () => {
    hosts.behaviour = never;
    const { finished } = await remote({ cmd: "sleep", "HOST!": "h1", timeout: 5 });
    await settled();
    expect(hosts.sent[0]?.timeoutMs).toBe(5_000);
    clock.advance(5_000 + DISPATCH_GRACE_MS);
    expect(await finished).toMatchObject([{ host: "h1", state: "timeout" }]);
    expect(rows.of("h1")).toMatchObject([{ status: "timeout" }]);
    expect(published.map((each) => (JSON.parse(each.msg) as { status: string }).status)).toEqual([
      "running",
      "timeout",
    ]);
  });

  test("gives parameters as environment, never as text of the command; HOST! overrides the job's host", async () => {
    await define({ exec: ["echo $target"] });
    const param = {
      "HOST!": "h7",
      target: "; rm -rf /",
      n: 5,
      list: [1],
      PATH: "/evil",
      ld_preload: "x",
      "odd-name": "y",
      gone: null,
    };
    await (await runs.execute(admin, "backup@common/x", { param: JSON.stringify(param) })).finished;
    const [sent] = hosts.sent;
    expect(sent?.host).toBe("h7");
    expect(sent?.command.line).toBe("echo $target");
    expect(sent?.command.environment).toEqual({
      ODP_RUN_ID: expect.stringMatching(/^[0-9A-Z]{26}$/) as string,
      ODP_PARAM_TARGET: "; rm -rf /",
      target: "; rm -rf /",
      ODP_PARAM_N: "5",
      n: "5",
      ODP_PARAM_LIST: "[1]",
      list: "[1]",
      ODP_PARAM_PATH: "/evil",
      ODP_PARAM_LD_PRELOAD: "x",
      ODP_PARAM_ODD_NAME: "y",
    });
  });

  test("gives each command the standard input of the call, which its row names but does not contain", async () => {
    await define({ exec: ["one", "two"] });
    const { finished } = await runs.execute(admin, "backup@common/x", { param: '{"STDIN!":"secret"}' });
    await finished;
    const inputs = hosts.sent.map(({ command }) => Buffer.from(command.input ?? []).toString());
    expect(inputs).toEqual(["secret", "secret"]);
    expect(rows.of("h1")[0]?.["params"]).toEqual(["STDIN!"]);
    expect(JSON.stringify(rows.of("h1"))).not.toContain("secret");
  });

  test("takes the time of the call, then of param, then of the job, then the default", async () => {
    await define({ timeout: 30 });
    const timeouts = async (request: { timeoutSeconds?: number; param?: string }) => {
      await (await runs.execute(admin, "backup@common/x", request)).finished;
      return hosts.sent.at(-1)?.timeoutMs;
    };
    expect(await timeouts({ timeoutSeconds: 10, param: '{"timeout":20}' })).toBe(10_000);
    expect(await timeouts({ param: '{"timeout":"20"}' })).toBe(20_000);
    expect(await timeouts({})).toBe(30_000);
    expect(await timeouts({ timeoutSeconds: 0 })).toBe(30_000);
  });

  test("runs several commands in their order and stops at the first that fails", async () => {
    await define({ exec: ["one", "two", "three"] });
    hosts.behaviour = ({ command }) =>
      command.line === "two" ? { state: "failed", code: 3, message: "exit code 3" } : {};
    expect(await (await runs.execute(admin, "backup@common/x", {})).finished).toMatchObject([
      { state: "failed", code: 3 },
    ]);
    expect(hosts.sent.map((sent) => sent.command.line)).toEqual(["one", "two"]);
    expect(new Set(hosts.sent.map((sent) => sent.commandId)).size).toBe(2);
  });

  test("on several hosts ends once on each, whatever becomes of the others", async () => {
    await define({ host: ["h1", "h2", "h3", "h4", "h1"] });
    hosts.behaviour = ({ host }) => {
      if (host === "h2") throw new AppError("not_found", "no such host");
      if (host === "h3") throw new Error("broken transport");
      return host === "h4" ? { state: "unreachable", message: "offline" } : {};
    };
    const finished = await (await runs.execute(admin, "backup@common/x", {})).finished;
    expect(finished.map(({ host, state }) => [host, state])).toEqual([
      ["h1", "ok"],
      ["h2", "unreachable"],
      ["h3", "failed"],
      ["h4", "unreachable"],
    ]);
    for (const { host, state } of finished) expect(rows.of(host)).toMatchObject([{ status: state }]);
  });

  test("in sequence runs on one host after the other, and in mode one on the first that can be reached", async () => {
    let working = 0;
    hosts.behaviour = async ({ host }) => {
      expect(++working).toBe(1);
      await settled();
      working--;
      return host === "h1" ? { state: "unreachable" } : {};
    };
    await define({ host: ["h1", "h2", "h3"], groupmode: "sequence" });
    expect(await (await runs.execute(admin, "backup@common/x", {})).finished).toHaveLength(3);
    await define({ host: ["h1", "h2", "h3"], groupmode: "one" });
    const finished = await (await runs.execute(admin, "backup@common/x", {})).finished;
    expect(finished.map(({ host, state }) => [host, state])).toEqual([
      ["h1", "unreachable"],
      ["h2", "ok"],
    ]);
  });

  test("keeps a bounded part of a flood of output and says how much there was", async () => {
    const block = new Uint8Array(1024 * 1024).fill(0x78);
    hosts.behaviour = ({ onOutput }) => {
      for (let count = 0; count < 20; count++) onOutput?.({ stderr: false, data: block });
      return {};
    };
    const { runId, finished } = await remote({ cmd: "flood", "HOST!": "h1" });
    const [run] = await finished;
    expect(run?.output).toMatch(/\n\[19922944 more bytes\]$/);
    expect(rows.of("h1")[0]).toMatchObject({ outputsize: 20 * 1024 * 1024 });
    const part = await new JobOutputs(stores).read("matrix", { runId, host: "h1" }, { offset: 0, maxBytes: 1 });
    expect(part.size).toBe(16 * 1024 * 1024);
  });

  test("is recorded after a store that was away for a moment", async () => {
    rows.failures = [new AppError("unavailable", "away"), new AppError("unknown_outcome", "perhaps")];
    const { finished } = await remote({ cmd: "x", "HOST!": "h1" });
    while (rows.failures.length > 0) {
      await settled();
      clock.advance(10_000);
    }
    await settled();
    clock.advance(10_000);
    await finished;
    expect(rows.of("h1")).toMatchObject([{ status: "ok" }]);
  });

  test.each<[object | string, string]>([
    ["{", "no JSON"],
    ["[1]", "no JSON object"],
    [{ cmd: "x" }, "no host"],
    [{ "HOST!": "h1" }, "cmd"],
    [{ cmd: "x", "HOST!": 5 }, "HOST!"],
    [{ cmd: "x", "HOST!": "" }, "no host"],
    [{ cmd: "x", "HOST!": "h1", timeout: "soon" }, "timeout"],
    [{ cmd: "x", "HOST!": "h1", a: "b\u0000" }, "NUL"],
    [{ cmd: "x", "HOST!": "h1", a: "b\ud800" }, '"a" in param has a lone surrogate'],
    [{ cmd: "x", "HOST!": "h1", big: "x".repeat(70_000) }, "65536"],
  ])("param %j is refused with a clear error", async (param, reason) => {
    const request = { param: typeof param === "string" ? param : JSON.stringify(param) };
    await expect(runs.execute(admin, "remote_command@system/common", request)).rejects.toThrow(reason);
    expect(rows.rows.size).toBe(0);
  });

  test("beyond the number of runs under way is refused, and room is given back", async () => {
    hosts.behaviour = never;
    const list = (from: number, count: number) => Array.from({ length: count }, (_, at) => `h${from + at}`);
    const first = await remote({ cmd: "x", "HOST!": list(0, 256) });
    await expect(remote({ cmd: "x", "HOST!": "more" })).rejects.toMatchObject({ code: "limited" });
    for (let turn = 0; turn < 10; turn++) {
      await settled();
      clock.advance(61_000);
    }
    expect((await first.finished).every((run) => run.state === "timeout")).toBe(true);
    hosts.behaviour = () => ({});
    expect(await (await remote({ cmd: "x", "HOST!": "more" })).finished).toMatchObject([{ state: "ok" }]);
  });
});

test("several executions take room for all of them or for none, and give it back", async () => {
  const list = (count: number) =>
    JSON.stringify({ cmd: "x", "HOST!": Array.from({ length: count }, (_, at) => `h${at}`) });
  const name = "remote_command@system/common";
  const [half, more] = [
    { name, param: list(128) },
    { name, param: list(129) },
  ];
  await expect(runs.executeAll(admin, [half, more])).rejects.toMatchObject({ code: "limited" });
  expect(rows.rows.size).toBe(0);
  for (let round = 0; round < 2; round++) {
    const begun = await runs.executeAll(admin, [half, half]);
    const executions = begun.flatMap((one) => ("execution" in one ? [one.execution.finished] : []));
    expect((await Promise.all(executions)).flat().filter(({ state }) => state === "ok")).toHaveLength(256);
  }
});

test("of several executions the one that cannot be begun fails alone, and gives its room back", async () => {
  const { insert } = rows;
  rows.insert = (principal, path, added, options) =>
    added.some((row) => row["host"] === "h2")
      ? Promise.reject(new AppError("unavailable", "away"))
      : insert.call(rows, principal, path, added, options);
  const param = (host: string) => ({
    name: "remote_command@system/common",
    param: JSON.stringify({ cmd: "x", "HOST!": host }),
  });
  const many = Array.from({ length: 128 }, (_, at) => `h${at + 2}`).join();
  for (let round = 0; round < 3; round++) {
    const [good, bad] = await runs.executeAll(admin, [param("h1"), param(many)]);
    expect(bad).toMatchObject({ error: { code: "unavailable" } });
    expect(await (good && "execution" in good ? good.execution.finished : [])).toMatchObject([{ state: "ok" }]);
  }
});
