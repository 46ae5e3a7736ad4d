import { spawn } from "node:child_process";
import { mkdir, mkdtemp, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { testEntries } from "../../../../test/helpers/areas/config.ts";
import { openTestEngine, type TestEngine } from "../../../../test/helpers/engines/engine.ts";
import { NAMED_HOSTS } from "../../../../test/helpers/hosts/named-hosts.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { testPrincipal, testRuntime } from "../../../../test/helpers/time/runtime.ts";
import type { PolicyPreview } from "../../../../common/api/policy-previews.ts";
import type { PolicyRecord } from "../../../../common/api/policies.ts";
import { AppError } from "../../../../common/errors.ts";
import { POLICY_PREVIEW_TAIL_BYTES } from "../../../../common/limits.ts";
import { HostObjects } from "../../../scripting/index.ts";
import type { CommandOutcome, DispatchOptions, HostCommand } from "../../hosts/index.ts";
import { ObjectService } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import { visibleObjects } from "../../query/index.ts";
import { RuleService, RuleTrials } from "../../rules/index.ts";
import { PolicyPreviews } from "./preview.ts";

const ADMIN = testPrincipal();
const RULE = "/matrix/rules/line";
const DRAFT = { name: "load", rule: RULE, ctype: 1, interval: 5, unit: "minute", split: true } as const;

let engine: TestEngine;
let objects: ObjectService;
let previews: PolicyPreviews;
let folder: string;
let saved: PolicyRecord;
const users: (string | undefined)[] = [];
const ids: string[] = [];

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "preview-"));
  engine = await openTestEngine();
  const runtime = testRuntime(realClock);
  objects = new ObjectService({ visible: visibleObjects, stores: engine, runtime });
  const rules = new RuleService({ stores: engine, entries: testEntries(engine), objects });
  const columns = [
    { name: "name", type: "varchar" },
    { name: "n", type: "int" },
  ] as const;
  await objects.createClass(ADMIN, { path: "/matrix/line", kind: "record", columns });
  await rules.put(ADMIN, RULE, "--class=/matrix/line\n--parser=csv\n--fields=name,n\n--fields_type=VAR,INT\n");
  previews = new PolicyPreviews({
    rules,
    runtime,
    trials: new RuleTrials({ hostObjects: () => new HostObjects([]), objects, rules, runtime }),
    targets: NAMED_HOSTS,
    depots: {
      toDeploy: (_by, name) =>
        name === "tools"
          ? Promise.resolve({ name, version: "1", files: [] })
          : Promise.reject(new AppError("not_found", "There is no depot web.")),
    },
    hosts: { dispatch, wayTo: () => Promise.resolve("agent" as const) },
    policies: { get: () => Promise.resolve(saved) },
    zoneOf: () => Promise.resolve(undefined),
  });
});
afterAll(async () => {
  await objects.close();
  await engine[Symbol.asyncDispose]();
  await rm(folder, { recursive: true });
});

/** The host `h1` is this machine. `h2` is away, and there is no other one. */
function dispatch(_by: Principal, host: string, command: HostCommand, options: DispatchOptions) {
  if (host !== "h1" && host !== "h2") return Promise.reject(new AppError("not_found", `There is no host ${host}.`));
  ids.push(options.commandId);
  const outcome = { host, startedMs: 0, endedMs: 0, message: "" };
  if (host === "h2") return Promise.resolve({ ...outcome, state: "unreachable", message: "It is away." } as const);
  if (command.kind !== "exec") throw new Error("A preview only runs commands.");
  users.push(command.user);
  const child = spawn("/bin/sh", ["-c", command.line], { env: { ...process.env, ...command.environment } });
  options.signal?.addEventListener("abort", () => child.kill("SIGKILL"));
  child.stdout.on("data", (data: Buffer) => options.onOutput?.({ stderr: false, data }));
  child.stderr.on("data", (data: Buffer) => options.onOutput?.({ stderr: true, data }));
  return new Promise<CommandOutcome>((resolve) => {
    child.on("close", (code) =>
      resolve({
        ...outcome,
        ...(code === null ? { state: "cancelled" } : { state: code === 0 ? "ok" : "failed", code }),
      }),
    );
  });
}

const run = (asked: Omit<PolicyPreview, "host">, { host = "h1", by = ADMIN } = {}) =>
  previews.run(by, { host, ...asked }, new AbortController().signal);
const command = (line: string) => ({ command: { ...DRAFT, command: line } });

async function stored(): Promise<number> {
  let rows = 0;
  for await (const page of objects.unrestricted.read(ADMIN, { class: "/matrix/line", subtree: false }))
    rows += page.length;
  return rows;
}

describe("a preview of a command policy", () => {
  test("shows the rows and the errors of each record, the error output and the exit code, and stores nothing", async () => {
    const line = `echo "$ODP_POLICY,1"; echo b,x; echo ill >&2; exit 3`;
    expect(await run(command(line))).toMatchObject({
      class: "/matrix/line",
      state: "ended",
      code: 3,
      errors: "ill",
      source: "command",
      records: [
        { raw: { text: "load,1", host: "h1" }, rows: [{ values: { name: "load", n: 1 } }], errors: [] },
        { raw: { text: "b,x" }, rows: [], errors: [{ message: expect.stringContaining("INT") }] },
      ],
      warnings: ["The command ended with code 3."],
    });
    expect(await stored()).toBe(0);
    expect(ids.every((id) => id.startsWith("preview-"))).toBe(true);
  });

  test("runs as the user and with the environment of the policy, and names the limits that it leaves out", async () => {
    const draft = { ...DRAFT, command: 'echo "$GREETING,1"', user: "web", environment: { GREETING: "hello" } };
    const { records, warnings } = await run({ command: { ...draft, nice: 5, cpulimit: 9 } });
    expect(records).toMatchObject([{ rows: [{ values: { name: "hello" } }] }]);
    expect(users.at(-1)).toBe("web");
    expect(warnings).toEqual(["A preview runs the command without cpulimit, nice."]);
  });

  test("says which version of a depot it used", async () => {
    const inDepot = { ...DRAFT, command: "true", ctype: 0, depotname: "tools", depotversion: "1" } as const;
    const { warnings } = await run({ command: inDepot });
    expect(warnings[0]).toContain("the version of the depot tools that is deployed to the host");
  });

  test("ends a command that never ends after the first records", async () => {
    const { state, records } = await run({ ...command("while echo a,1; do :; done"), records: 2 });
    expect([state, records.length]).toEqual(["enough", 2]);
  });

  test("takes the whole output for one record without split", async () => {
    const { records } = await run({ command: { ...DRAFT, split: false, command: "printf 'a,1\\n\\n'" } });
    expect(records).toMatchObject([{ rows: [{ values: { name: "a", n: 1 } }] }]);
  });

  test("runs the saved policy of a name", async () => {
    saved = { ...DRAFT, kind: "command", command: "echo s,9", hosts: [] } as unknown as PolicyRecord;
    expect((await run({ name: "load" })).records).toMatchObject([{ rows: [{ values: { name: "s", n: 9 } }] }]);
    saved = { name: "load", kind: "command", rule: RULE } as PolicyRecord;
    await expect(run({ name: "load" })).rejects.toMatchObject({ code: "denied" });
  });

  test("is refused for a host that is away or unknown, a rule or depot that does not exist, and missing rights", async () => {
    const before = ids.length;
    await expect(run(command("true"), { host: "h2" })).rejects.toMatchObject({ code: "unavailable" });
    await expect(run(command("true"), { host: "h3" })).rejects.toMatchObject({ code: "not_found" });
    const lost = { command: { ...DRAFT, command: "true", rule: `${RULE}s` } };
    await expect(run(lost)).rejects.toMatchObject({ code: "not_found" });
    const inDepot = { ...DRAFT, command: "true", ctype: 0, depotname: "web", depotversion: "1" };
    await expect(run({ command: inDepot })).rejects.toMatchObject({ code: "not_found" });
    await expect(run({})).rejects.toMatchObject({ code: "invalid" });
    const rights = ["policies:write", "policies:run", "jobs:run"] as const;
    for (const grants of rights.map((missing) => rights.filter((one) => one !== missing)))
      await expect(run(command("true"), { by: { ...ADMIN, grants } })).rejects.toMatchObject({ code: "denied" });
    expect(ids.length - before).toBe(1);
  });
});

describe("a preview of a log policy", () => {
  const log = (more: object = {}) => ({
    log: { name: "log", rule: RULE, dir: folder, match: "(?<app>\\w+)\\.log$", ...more },
  });

  test("shows the newest records of the file that was changed last, with a name of any characters", async () => {
    const named = join(folder, "it's $(here)");
    await mkdir(named);
    await writeFile(join(named, "a.log"), "old,0\nskip,5\na,1\nb,2\n");
    await writeFile(join(folder, "b.log"), "c,3\n");
    await writeFile(join(folder, "other.txt"), "d,4\n");
    await utimes(join(folder, "b.log"), 1, 1);
    const { source, records, warnings } = await run({ ...log({ matchregexp: "^[^s]" }), records: 3 });
    expect([source, warnings]).toEqual([join(named, "a.log"), []]);
    expect(records.map(({ raw }) => raw?.text)).toEqual(["old,0", "a,1", "b,2"]);
    expect(records[2]?.rows).toMatchObject([{ values: { name: "b", n: 2 } }]);
    expect(await stored()).toBe(0);
  });

  test("leaves out the broken first record of a long file, and says that it read a part", async () => {
    await writeFile(join(folder, "long.log"), `${"x".repeat(POLICY_PREVIEW_TAIL_BYTES)}\na,1\n`);
    const { records, warnings } = await run(log({ match: "^long" }));
    expect(records.map(({ raw }) => raw?.text)).toEqual(["a,1"]);
    expect(warnings).toEqual([expect.stringContaining("Only the last")]);
  });

  test("says that no file matches, and refuses a folder that does not exist and a packed file", async () => {
    expect(await run(log({ match: "none" }))).toMatchObject({ records: [], source: "", warnings: [expect.anything()] });
    await expect(run(log({ dir: join(folder, "gone") }))).rejects.toMatchObject({ code: "unavailable" });
    await writeFile(join(folder, "p.gz"), "");
    await expect(run(log({ match: "gz$" }))).rejects.toMatchObject({ code: "unsupported" });
  });
});
