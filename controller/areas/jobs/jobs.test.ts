import { describe, expect, test } from "vitest";
import { TestClock, testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { TAGS_COLUMN, type SystemClass } from "../objects/index.ts";
import { jobClasses } from "./classes.ts";
import {
  admin,
  clock,
  stores,
  hosts,
  rows,
  jobs,
  runs,
  useJobs,
  newRuns,
  define,
  remote,
  text,
  never,
  openKeys,
  settled,
} from "../../../test/helpers/jobs/job-world.ts";

useJobs();

const other = testPrincipal("administrator", "other");
const viewer = testPrincipal("viewer");

describe("definitions", () => {
  test("are added, replaced, read and deleted by <name>@<dir>, with every field a client sends", async () => {
    await define({
      dir: "/common/x/",
      schedule: "cron 0/5 * * * *",
      groupmode: "parallel",
      queue: "q",
      tag: ["a"],
      arg: ["1"],
      argenc: "gbk",
      timeout: 7,
      limit: 3,
      algorithm: "random",
    });
    const record = await jobs.get(admin, "backup@common/x");
    expect(record).toMatchObject({
      id: "jobdef:backup@common/x",
      class: "/matrix/jobs/jobdef",
      fullname: "backup@common/x",
      dir: "common/x",
      exec: ["run-backup"],
      host: ["h1"],
      schedule: "cron 0/5 * * * *",
      groupmode: "parallel",
      queue: "q",
      tag: ["a"],
      arg: ["1"],
      timeout: 7,
      limit: 3,
      enable: 1,
      system: false,
      creator: "administrator",
    });
    expect(await define({ exec: ["other"] })).toMatchObject({ job: { exec: ["other"], schedule: "" } });
    expect((await jobs.list(admin)).map((job) => job.fullname)).toEqual([
      "backup@common/x",
      "remote_command@system/common",
      "remote_wincall@system/common",
    ]);
    await jobs.remove(admin, "backup@common/x");
    await expect(jobs.get(admin, "backup@common/x")).rejects.toMatchObject({ code: "not_found" });
    await expect(jobs.remove(admin, "backup@common/x")).rejects.toMatchObject({ code: "not_found" });
  });

  test.each([
    [{ name: "a@b" }, "@"],
    [{ name: "a/b" }, "slash"],
    [{ dir: "../x" }, "leaves"],
    [{ exec: [" "] }, "exec"],
    [{ dir: "system/common" }, "platform"],
  ])("%j is refused", async (change, reason) => {
    await expect(define(change)).rejects.toThrow(reason);
  });

  test("jobs of the platform cannot be deleted; what is no job's name is not found", async () => {
    await expect(jobs.remove(admin, "remote_command@system/common")).rejects.toMatchObject({ code: "denied" });
    for (const name of ["exist/backup@common/x", "sync", "a@../b", ""])
      await expect(jobs.get(admin, name)).rejects.toMatchObject({ code: "not_found" });
  });

  test("are rows of /jobs/jobdef that MQL may delete and tag only", async () => {
    const classes: SystemClass[] = [];
    classes.push(...jobClasses(jobs));
    await define();
    const [definition] = classes;
    for await (const page of definition?.provide?.(admin) ?? []) {
      expect(page.map((row) => row["id"])).toEqual([
        "jobdef:backup@common/x",
        "jobdef:remote_command@system/common",
        "jobdef:remote_wincall@system/common",
      ]);
      const known = new Set([...(definition?.columns.map((column) => column.name) ?? []), "id", "class", TAGS_COLUMN]);
      expect(Object.keys(page[0] ?? {}).filter((name) => !known.has(name))).toEqual([]);
    }
    const id = "jobdef:backup@common/x";
    const edit = { column: "timeout", operation: "set", value: 5 } as const;
    await expect(definition?.guard.update?.(admin, id, [edit])).rejects.toMatchObject({ code: "unsupported" });
    expect(await definition?.guard.remove?.(admin, [id])).toBe(1);
    expect(definition?.guard.insert).toBeUndefined();
  });
});

describe("the controller's own end", () => {
  test("begins nothing new, lets go of what is under way and leaves it open on record", async () => {
    hosts.behaviour = never;
    const { finished } = await remote({ cmd: "x", "HOST!": "h1" });
    const told = expect(finished).rejects.toMatchObject({ code: "deadline" });
    await settled();
    await runs.close();
    await told;
    expect(rows.of("h1")).toMatchObject([{ status: "running" }]);
    await expect(remote({ cmd: "x", "HOST!": "h1" })).rejects.toMatchObject({ code: "unavailable" });
  });

  test("when it came without warning and another one does not see it gone, ends its runs once they are well past their deadline", async () => {
    hosts.behaviour = never;
    await remote({ cmd: "x", "HOST!": "h1" });
    await settled();
    await newRuns("b").maintain("matrix");
    expect(rows.of("h1")).toMatchObject([{ status: "running" }]);
    await newRuns("b", { clock: new TestClock(clock.nowMs() + 200_000) }).maintain("matrix");
    expect(rows.of("h1")).toMatchObject([{ status: "expired" }]);
    expect(openKeys()).toEqual([]);
  });

  test("old outputs are removed once their rows have expired, younger ones stay", async () => {
    hosts.behaviour = ({ onOutput }) => (onOutput?.(text("x")), {});
    await (await remote({ cmd: "x", "HOST!": "h1" })).finished;
    clock.advance(20 * 86_400_000);
    await runs.maintain("matrix");
    expect(stores.streams("matrix")).toBe(1);
    clock.advance(20 * 86_400_000);
    await runs.maintain("matrix");
    expect(stores.streams("matrix")).toBe(0);
  });
});

test("a viewer reads jobs but neither defines, deletes nor runs them", async () => {
  await define();
  expect(await jobs.list(viewer)).toHaveLength(3);
  const denied = { code: "denied" };
  await expect(jobs.save(viewer, { name: "x", exec: ["y"] })).rejects.toMatchObject(denied);
  await expect(jobs.remove(viewer, "backup@common/x")).rejects.toMatchObject(denied);
  await expect(runs.execute(viewer, "backup@common/x", {})).rejects.toMatchObject(denied);
  expect(hosts.sent).toEqual([]);
});

test("tenants neither see nor run each other's jobs", async () => {
  await define();
  expect((await jobs.list(other)).map((job) => job.name)).toEqual(["remote_command", "remote_wincall"]);
  await expect(jobs.get(other, "backup@common/x")).rejects.toMatchObject({ code: "not_found" });
  await expect(runs.execute(other, "backup@common/x", {})).rejects.toMatchObject({ code: "not_found" });
  await (await runs.execute(other, "remote_command@system/common", { param: '{"cmd":"x","HOST!":"h1"}' })).finished;
  expect(hosts.sent).toMatchObject([{ tenant: "other" }]);
  expect(rows.of("h1")).toMatchObject([{ class: "/other/jobs/jobrun" }]);
});
