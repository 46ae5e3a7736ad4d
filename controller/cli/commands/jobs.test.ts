import { once } from "node:events";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openCommands, type Commands } from "../../../test/helpers/programs/commands.ts";
import type { CommandOutcome, DispatchOptions } from "../../areas/hosts/index.ts";

/** Jobs and their runs, by commands against a whole controller in this process. The ends of its hosts are simulated. */

let commands: Commands;
beforeAll(async () => {
  commands = await openCommands();
  for (const host of ["h1", "h2"]) await commands.odp(`host set ${host} --tag test`);
});
afterAll(() => commands[Symbol.asyncDispose]());

const odp: Commands["odp"] = (words, options) => commands.odp(words, options);

type Work = (host: string, options: DispatchOptions) => Promise<Partial<CommandOutcome>>;

function onHosts(work: Work): void {
  commands.world.assembly.hosts.dispatch = async (_principal, host, _command, options) => {
    options.onOutput?.({ stderr: false, data: Buffer.from(`begun on ${host}\n`) });
    const end = await work(host, options);
    return { host, state: "ok", code: 0, message: "", startedMs: 1, endedMs: Date.now(), ...end };
  };
}

test("a job is made by options, changed by what is given, and made again from a file", async () => {
  const when = ["--when", "0 3 * * *;tz=Europe/Oslo"];
  expect((await odp(["job", "schedule", "backup@nightly", ...when])).err).toContain("add --exec <command>");
  const made = await odp([
    "job",
    "schedule",
    "backup@nightly",
    "--exec",
    "true",
    "--host",
    "h1",
    "--host",
    "h2",
    ...when,
  ]);
  expect(made).toMatchObject({
    code: 0,
    out: expect.stringMatching(/^backup@nightly +yes +0 3 \* \* \*;tz=Europe\/Oslo +\d{4}-/m),
  });
  expect((await odp("job schedule backup@nightly --host h1 --timeout 9")).code).toBe(0);
  const { out } = await odp("job show backup@nightly -o json");
  expect(JSON.parse(out)).toMatchObject({ host: ["h1"], timeout: 9, exec: ["true"], schedule: when[1] });
  const file = { stdin: JSON.stringify({ name: "backup", dir: "nightly", timeout: 9 }) };
  expect(await odp("job schedule -f -", file)).toMatchObject({ code: 64, err: expect.stringContaining("list exec") });
  expect(await odp("job schedule copy@nightly -f -", { stdin: out })).toMatchObject({
    code: 0,
    err: expect.not.stringContaining("odp:"),
  });
  expect((await odp("job disable copy@nightly")).code).toBe(0);
  expect((await odp("job list")).out).toMatch(/^copy@nightly +no/m);
  expect((await odp("job schedule backup@nightly")).code).toBe(64);
  expect((await odp("job remove copy@nightly")).code).toBe(0);
  expect((await odp("job list -o name")).out).not.toContain("copy@nightly");
});

test("a run that is under way is attached to: its output so far, what comes, a line for each host, its exit code", async () => {
  let release = (): void => undefined;
  const held = new Promise<void>((resolve) => (release = resolve));
  onHosts(async (host, { onOutput }) => {
    await held;
    onOutput?.({ stderr: true, data: Buffer.from(`late on ${host}\n`) });
    return host === "h2" ? { state: "failed", code: 7, message: "exit code 7" } : {};
  });
  const { out: id } = await odp("job run backup@nightly --detach --host h1 h2");
  const attached = await odp(["job", "attach", id.trim()], {
    interruptAt(out) {
      if (out.includes("h1: begun on h1\n") && out.includes("h2: begun on h2\n")) release();
      return false;
    },
  });
  expect(attached.out.trimEnd().split("\n").sort()).toEqual([
    "h1: begun on h1",
    "h1: late on h1",
    "h2: begun on h2",
    "h2: late on h2",
  ]);
  expect(attached).toMatchObject({
    code: 7,
    err: "odp: h1: ok\nodp: h2: failed: exit code 7\nodp: 2 hosts: 1 ok, 1 failed\n",
  });
  const again = await odp(["job", "attach", id.trim(), "--tail", "1", "--raw"]);
  expect(again).toMatchObject({ code: 7, out: expect.stringMatching(/^late on h\d\nlate on h\d\n$/) });
  expect(await odp("job attach 01ARZ3NDEKTSV4RRFFQ69G5FAV")).toMatchObject({
    code: 1,
    err: expect.stringContaining("odp job runs"),
  });
  expect((await odp(["job", "attach", id.trim(), "-o", "json"])).code).toBe(64);
});

test("Ctrl-C leaves a followed run going and says how to follow it again", async () => {
  let [release, isCancelled] = [(): void => undefined, false];
  const held = new Promise<void>((resolve) => (release = resolve));
  onHosts(async (_host, { signal }) => {
    if (signal) void once(signal, "abort").then(() => (isCancelled = true));
    await held;
    return {};
  });
  const left = await odp("job run backup@nightly --follow", { interruptAt: (out) => out.includes("begun on h1") });
  const [, id = ""] = /^odp: run (\w+)$/m.exec(left.err) ?? [];
  expect(left).toMatchObject({
    code: 130,
    err: expect.stringContaining(`odp: the run goes on. Run: odp job attach ${id}\n`),
  });
  release();
  expect(await odp(["job", "attach", id])).toMatchObject({ code: 0, err: "odp: h1: ok\nodp: 1 host: 1 ok\n" });
  expect(isCancelled).toBe(false);
});
