import { afterAll, beforeAll, expect, test } from "vitest";
import { openJobRuns, said, type SentCommand } from "../../../../test/helpers/jobs/job-runs.ts";
import { testPrincipal } from "../../../../test/helpers/time/runtime.ts";
import type { Row } from "../../../../common/value.ts";
import type { CommandOutcome } from "../../hosts/index.ts";
import type { DataRule, Principal } from "../../permissions/index.ts";

const ADMIN = testPrincipal();

let scene: Awaited<ReturnType<typeof openJobRuns>>;
beforeAll(async () => {
  scene = await openJobRuns();
});
afterAll(() => scene[Symbol.asyncDispose]());

/** Writes its own line to both streams; `exit 3` ends with that code. */
function speaking({ command, onOutput }: SentCommand): Partial<CommandOutcome> {
  const line = command.kind === "exec" ? command.line : "";
  onOutput?.(said(`${line}: ä\n`));
  onOutput?.({ ...said(`${line}!`), stderr: true });
  return line.includes("exit 3")
    ? { state: "failed", code: 3, message: "exit code 3", startedMs: 5, endedMs: 7 }
    : { code: 0, startedMs: 3, endedMs: 4 };
}

const commandsOf = (runId: string, who: Principal = ADMIN) =>
  scene.query.rows(who, "SELECT * FROM /matrix/jobs/cmdrun WHERE runid = ? ORDER BY host, place", [runId]);

async function run(name: string, own = "a"): Promise<string> {
  const { runId, finished } = await scene.controller(own, { dispatch: speaking }).execute(ADMIN, name, {});
  await finished;
  return runId;
}

test("each command of a run is an object: what it was, how it ended, and its own output", async () => {
  await scene.jobs.save(ADMIN, { name: "three", dir: "d", exec: ["one", "exit 3", "never"], host: ["h1", "h2"] });
  const runId = await run("three@d");
  const [runRow] = await scene.rowsOf(runId);
  const same = { runid: runId, name: "three@d", dir: "d", sid: runRow?.["sid"], source: ADMIN.user, type: "cmd" };
  const first = { ...same, place: 1, cmd: "one", status: "ok", code: 0, out: "one: ä\n", err: "one!" };
  const second = { ...same, place: 2, cmd: "exit 3", status: "failed", code: 3, out: "exit 3: ä\n", err: "exit 3!" };
  expect(await commandsOf(runId)).toMatchObject([
    { ...first, host: "h1" },
    { ...second, host: "h1", message: "exit code 3" },
    { ...first, host: "h2" },
    { ...second, host: "h2" },
  ]);
  expect(runRow).toMatchObject({ status: "failed", out: "one: ä\nexit 3: ä\n", err: "one!exit 3!" });
});

test("a single command is the only one of its run; what tries before the last one said is not there", async () => {
  await scene.jobs.save(ADMIN, { name: "again", exec: ["exit 3"], host: ["h1"], retry: 2 });
  const runId = await run("again");
  expect(await scene.rowsOf(runId)).toMatchObject([{ tries: 3 }]);
  expect(await commandsOf(runId)).toMatchObject([{ place: 1, cmd: "exit 3", status: "failed", out: "exit 3: ä\n" }]);
});

test("the process of a command is told where its host tells it, of a run that of its last command", async () => {
  await scene.jobs.save(ADMIN, { name: "numbered", exec: ["one", "two"], host: ["h1", "h2"] });
  const pids: Readonly<Record<string, number>> = { "h1/0": 71, "h1/1": 72 };
  const dispatch = ({ commandId }: SentCommand): Partial<CommandOutcome> => {
    const pid = pids[commandId.split("/").slice(-2).join("/")];
    return { code: 0, ...(pid !== undefined && { pid }) };
  };
  const { runId, finished } = await scene.controller("a", { dispatch }).execute(ADMIN, "numbered", {});
  expect(await finished).toMatchObject([{ state: "ok" }, { state: "ok" }]);
  const pidOf = ({ host, pid }: Row) => [host, pid];
  expect((await commandsOf(runId)).map(pidOf)).toEqual([
    ["h1", 71],
    ["h1", 72],
    ["h2", null],
    ["h2", null],
  ]);
  expect((await scene.rowsOf(runId)).map(pidOf)).toEqual([
    ["h1", 72],
    ["h2", null],
  ]);
});

test("output beyond what a row holds is noted with the last command", async () => {
  await scene.jobs.save(ADMIN, { name: "long", exec: ["one", "two"], host: ["h1"] });
  const dispatch = ({ onOutput }: SentCommand) => (onOutput?.(said("x".repeat(40_000))), { code: 0 });
  const { runId, finished } = await scene.controller("a", { dispatch }).execute(ADMIN, "long", {});
  await finished;
  const [one, two] = await commandsOf(runId);
  expect(String(one?.["out"])).toHaveLength(40_000);
  expect(String(two?.["out"])).toBe(`${"x".repeat(65_536 - 40_000)}\n[14464 more bytes]`);
});

test("who reads them has rights on their class; a neighbour has none of them", async () => {
  await scene.jobs.save(ADMIN, { name: "seen", exec: ["one"], host: ["h1"] });
  const runId = await run("seen");
  const reader = testPrincipal("viewer");
  const path = "/matrix/jobs/cmdrun";
  const narrowed = (rule: Partial<DataRule>): Principal => ({
    ...reader,
    data: [{ class: path, access: "read", ...rule }],
  });
  expect(await commandsOf(runId, narrowed({}))).toHaveLength(1);
  const [hidden] = await commandsOf(runId, narrowed({ hidden: ["out"] }));
  expect([hidden?.["cmd"], hidden?.["out"]]).toEqual(["one", undefined]);
  const elsewhere = scene.query.rows(narrowed({ class: "/matrix/jobs/jobrun" }), `SELECT * FROM ${path}`, []);
  await expect(elsewhere).rejects.toMatchObject({ code: "not_found" });
  const neighbour = testPrincipal("administrator", "second");
  expect(await scene.query.rows(neighbour, "SELECT * FROM /second/jobs/cmdrun", [])).toEqual([]);
});
