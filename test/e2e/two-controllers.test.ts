import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { AGENT_SESSION_LEASE_MS } from "../../common/limits.ts";
import { seededRandom } from "../helpers/time/clock.ts";
import { prove } from "../helpers/runs/evidence.ts";
import { eventually } from "../helpers/programs/programs.ts";
import { writeAccessLog } from "./access-log.ts";
import { effectsOnce, HotWrites, prepareEffects } from "./effects.ts";
import { clusterVariables, Installation } from "./installation.ts";
import { everyRunOnce } from "./scheduled-runs.ts";

const HOST = "web-1";
const LINES = 12_000;
/** Writes of one object with triggers, through both controllers. */
const WRITES = 200;
const DEADLINE_MS = 120_000;
const SEED = Number(process.env["ODP_TEST_SEED"] ?? 1);
/** Lines of a job, one every tenth of a second. */
const JOB_LINES = 150;
const JOB = `i=0; while [ $i -lt ${JOB_LINES} ]; do echo "line $i"; i=$((i+1)); sleep 0.1; done`;
const WHOLE = Array.from({ length: JOB_LINES }, (_, at) => `line ${at}\n`).join("");

const TRIED = "--class=/matrix/e2e/access\n--parser=text\n--fields=path\n";
interface Tried {
  readonly records: readonly {
    readonly raw: { readonly host: string; readonly text: string };
    readonly rows: readonly { readonly values: Record<string, unknown> }[];
  }[];
}

const cluster = inject("cluster");
const settings = cluster.available ? clusterVariables(cluster.settings) : undefined;

/** Two controllers on one etcd and Cassandra. One has the agent's session; all calls go to the other. */
describe.skipIf(settings === undefined)("of two controllers", () => {
  const random = seededRandom(SEED);
  const found: Record<string, number> = {};
  let a: Installation;
  let b: Installation;
  let writing: Promise<number> | undefined;
  let written = 0;
  /** Half of the lines are written during the second outage. */
  let secondHalf: () => void = () => undefined;
  const first = new Promise<void>((resolve) => (secondHalf = resolve));

  beforeAll(async () => {
    a = await Installation.start(settings ?? {});
    b = await Installation.start({ ...settings, ODP_SECRET_KEY_FILE: join(a.folder, "secret.key") });
    await a.enrol(HOST);
    await prepare();
  });

  afterAll(async () => {
    secondHalf();
    await writing?.catch(() => undefined);
    await b.controller.kill("SIGTERM");
    await a.stop();
    await b.stop();
  });

  it("one is killed: the agent goes to the other, and what was called there goes on", async () => {
    const heard = await b.listen("jobrun");
    const job = run(b, JOB);
    await eventually(
      "the job is under way",
      DEADLINE_MS,
      () => heard.frames.some(({ msg }) => String(msg).includes('"running"')) || undefined,
    );
    await someLines();
    const hot = new HotWrites([a, b], WRITES);
    await hot.half;
    await a.controller.kill("SIGKILL");
    found["works again after a kill, ms"] = await worksAgain(b);
    await endsWhole(b, job, heard.frames);
    heard.close();
    await a.startController();
    expect(await answer(run(a, "echo from the new one"))).toContain("from the new one");
    await hot.end();
    found["writes with triggers"] = await effectsOnce(b, WRITES);
  });

  it("one is paused for longer than its lease and wakes: nothing is doubled, and it serves again", async () => {
    // Now `b` has the agent's session, so the roles are exchanged.
    const heard = await a.listen("jobrun");
    const job = run(a, JOB);
    // The run of the first frame is the one that is checked at the end.
    await underWay(heard.frames, 1);
    const own = run(b, "sleep 4; echo called at the paused one").catch(() => undefined);
    secondHalf();
    await underWay(heard.frames, 2);
    await someLines();
    const pausedMs = performance.now();
    process.kill(b.controller.pid, "SIGSTOP");
    try {
      const changing = definitionsChange(a);
      changing.catch(() => undefined);
      found["works again after a pause, ms"] = await worksAgain(a);
      await endsWhole(a, job, heard.frames);
      found["definitions change beside a paused one, ms"] = await changing;
      await eventually(
        "the lease is over",
        DEADLINE_MS,
        () => performance.now() - pausedMs > AGENT_SESSION_LEASE_MS * 1.5 || undefined,
      );
    } finally {
      process.kill(b.controller.pid, "SIGCONT");
    }
    await own;
    // It writes by definitions that it did not know when it was paused.
    await eventually("the one that woke writes by the new definitions", DEADLINE_MS, () =>
      b.mql("insert into /matrix/e2e/note id='late', said='b', size=2").catch(() => undefined),
    );
    expect(await a.mql("select id, said, size from /matrix/e2e/note where size > 0 order by id")).toMatchObject([
      { said: "b", size: 2 },
      { said: "a", size: 1 },
    ]);
    expect(
      await eventually("the one that woke serves again", DEADLINE_MS, () =>
        answer(run(b, "echo awake")).then((text) => (text.includes("awake") ? text : undefined)),
      ),
    ).toContain("awake");
    expect(await answer(run(a, "echo both"))).toContain("both");
    heard.close();
  });

  it("afterwards everything is there exactly once", async () => {
    await writing;
    await eventually(
      "all lines are counted",
      DEADLINE_MS,
      async () => Number((await lines())?.["count"]) >= LINES || undefined,
    );
    expect(await lines()).toMatchObject({ count: LINES, total: (LINES * (LINES - 1)) / 2, low: 0, high: LINES - 1 });
    const runs = await everyRunOnce(a, "tick");
    const jobs = await eventually("every job has its end", DEADLINE_MS, async () => {
      const rows = await b.mql("select runid, host, status, outputsize from /matrix/jobs/jobrun limit -1");
      return rows.every(({ status }) => status !== "running") ? rows : undefined;
    });
    const whole = jobs.filter(({ outputsize }) => Number(outputsize) === WHOLE.length);
    expect(whole).toHaveLength(2);
    expect(whole.every(({ status }) => status === "ok")).toBe(true);
    expect(new Set(jobs.map(({ runid, host }) => `${String(runid)} ${String(host)}`)).size).toBe(jobs.length);
    // If a job did not report its own end, the agent did: each command had one end.
    const ends = await b.mql("select command from /matrix/system/command limit -1");
    expect(new Set(ends.map(({ command }) => String(command))).size).toBe(ends.length);
    expect(ends.length).toBeGreaterThanOrEqual(whole.length);
    expect(Object.keys(found)).toHaveLength(4);
    prove("controllers-fail-over", {
      seeds: [SEED],
      lines: LINES,
      runs: runs.runs,
      "runs counted by gaps": runs.skipped,
      jobs: jobs.length,
      "bytes of output of a job": WHOLE.length,
      ...found,
    });
  });

  it("a rule is tried at either on the raw records that both took", async () => {
    const tried = async (odp: Installation) => {
      const asked = { policy: "access", last: 200, text: TRIED };
      const { records } = (await odp.ok("POST", "/mxobject/rule/try", JSON.stringify(asked))) as Tried;
      return records.map(({ raw, rows }) => [raw.host, raw.text, rows[0]?.values["path"]]);
    };
    const atA = await tried(a);
    expect(atA).toHaveLength(200);
    expect(atA.every(([host, text, path]) => host === HOST && text === path)).toBe(true);
    expect(await tried(b)).toEqual(atA);
  });

  async function prepare(): Promise<void> {
    const logs = join(a.folder, "logs");
    await mkdir(logs);
    await a.mql(
      "create class if not exists /matrix/e2e/access (client varchar, path varchar, status int, n bigint, index(client)) with kind='record'",
    );
    await prepareEffects(a);
    await a.mql("create class if not exists /matrix/e2e/tick (text varchar) with kind='record'");
    const tell = { class: "/matrix/e2e/tick", name: "tell", script: "DATACHANGE = true", attr: { before: "true" } };
    await a.ok("PUT", "/mxobject/trigger", JSON.stringify(tell));
    await a.mql("create class if not exists /matrix/e2e/note (said varchar) with key='manu'");
    const grok =
      '--class=/matrix/e2e/access\n--parser=grok\n--pattern_1=%{IP:client} - - \\[%{HTTPDATE}\\] "%{WORD} %{NOTSPACE:path}[^"]*" %{INT:status:int} %{INT:n:int}\nsetvar("n", getvar("n"))\n';
    await a.ok("PUT", "/mxobject/rule", new URLSearchParams({ key: "/matrix/rules/e2e/access", value: grok }));
    await a.ok(
      "PUT",
      "/mxobject/rule",
      new URLSearchParams({
        key: "/matrix/rules/e2e/tick",
        value: "--class=/matrix/e2e/tick\n--parser=text\n--fields=text\n",
      }),
    );
    // Deployed through the controller without the agent's session.
    await b.ok(
      "POST",
      "/monitoring/policy/log",
      JSON.stringify({
        name: "access",
        rule: "/matrix/rules/e2e/access",
        dir: logs,
        match: "^access\\.log(\\.\\d+)?$",
        hosts: [HOST],
      }),
    );
    await b.ok(
      "POST",
      "/monitoring/policy",
      JSON.stringify({
        name: "tick",
        rule: "/matrix/rules/e2e/tick",
        command: "echo tick",
        ctype: 1,
        interval: 1,
        unit: "second",
        hosts: [HOST],
      }),
    );
    await eventually(
      "the agent works by its policies",
      DEADLINE_MS,
      async () => Number((await b.mql("select count(*) from /matrix/e2e/tick"))[0]?.["count"]) > 0 || undefined,
    );
    writing = writeAccessLog({
      folder: logs,
      lines: LINES,
      rotateEveryLines: 5_000,
      linesPerBurst: 40,
      pauseMs: 60,
      onProgress: async (lineCount) => {
        written = lineCount;
        if (written >= LINES / 2) await first;
      },
    });
  }

  /** Waits for a moment that the seed selects. */
  async function someLines(): Promise<void> {
    const until = Math.min(written < LINES / 2 ? LINES / 2 : LINES, written + 200 + Math.floor(random.next() * 600));
    await eventually("some more lines are written", DEADLINE_MS, () => written >= until || undefined);
  }

  /** Milliseconds until a job succeeds, records arrive, and a socket receives them. */
  async function worksAgain(odp: Installation): Promise<number> {
    const startMs = performance.now();
    const heard = await odp.listen("datachange");
    expect(await answer(run(odp, "echo works"))).toContain("works");
    await eventually(
      "records flow, and the socket hears of them",
      DEADLINE_MS,
      () => heard.frames.some(({ title }) => title === "/matrix/e2e/tick") || undefined,
    );
    heard.close();
    return Math.round(performance.now() - startMs);
  }

  /** Time in milliseconds to create a class, change another one and write by both. */
  async function definitionsChange(odp: Installation): Promise<number> {
    const startMs = performance.now();
    await odp.mql("alter class /matrix/e2e/note add column size int");
    await odp.mql("create class /matrix/e2e/fresh (x int)");
    await odp.mql("insert into /matrix/e2e/note id='now', said='a', size=1; insert into /matrix/e2e/fresh id='f', x=1");
    return Math.round(performance.now() - startMs);
  }

  async function endsWhole(
    odp: Installation,
    job: Promise<unknown>,
    frames: readonly Record<string, string>[],
  ): Promise<void> {
    expect(await answer(job)).toContain(WHOLE);
    const runId = frames.map(({ msg }) => JSON.parse(msg ?? "") as { runid: string; status: string });
    const [first] = runId;
    const ends = () => runId.filter(({ runid, status }) => runid === first?.runid && status !== "running");
    expect(ends().length).toBeLessThanOrEqual(1);
    const [row] = await odp.mql(`select status, outputsize from /matrix/jobs/jobrun where runid='${first?.runid}'`);
    expect(row).toMatchObject({ status: "ok", outputsize: WHOLE.length });
  }

  async function lines(): Promise<Record<string, unknown> | undefined> {
    return (await a.mql("select count(*), sum(n) as total, min(n) as low, max(n) as high from /matrix/e2e/access"))[0];
  }
});

function run(odp: Installation, cmd: string): Promise<unknown> {
  const param = JSON.stringify({ cmd, "HOST!": HOST, timeout: 90 });
  return odp.ok("GET", `/job/remote_command@system/common?receive_output=true&param=${encodeURIComponent(param)}`);
}

async function underWay(frames: readonly Record<string, string>[], count: number): Promise<void> {
  await eventually(
    `${count} jobs are under way`,
    DEADLINE_MS,
    () => frames.filter(({ msg }) => String(msg).includes('"running"')).length >= count || undefined,
  );
}

async function answer(job: Promise<unknown>): Promise<string> {
  return String(await job);
}
