import { createHash } from "node:crypto";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openTestHosts, type TestHosts } from "../../../test/helpers/hosts/hosts.ts";
import { startRealAgent } from "../../../test/helpers/hosts/real-agent.ts";
import { eventually } from "../../../test/helpers/programs/programs.ts";
import { targetContract } from "./contract/target.ts";

let test: TestHosts;
let folder = "";
beforeAll(async () => {
  test = await openTestHosts();
  folder = await mkdtemp(join(tmpdir(), "odp-agent-"));
});
afterAll(async () => {
  await test[Symbol.asyncDispose]();
  await rm(folder, { recursive: true, force: true });
});

const startAgent = (host: string, at: TestHosts = test) => startRealAgent(at, host, folder);

describe("the agent", () => {
  let agent: Awaited<ReturnType<typeof startAgent>>;
  afterAll(() => agent.stop());

  targetContract("agent", async () => {
    agent = await startAgent("target");
    return {
      blobs: (await test.engine.tenant("matrix")).blobs,
      run: (command, options) => test.hosts.dispatch(test.principal(), "target", command, options),
    };
  });

  it("shows itself on its host's record, and leaves it as offline", async () => {
    const before = Date.now();
    const other = await startAgent("facts");
    const names: string[] = [];
    for await (const views of test.hosts.list(test.principal(), { status: true }))
      names.push(...views.map(({ host }) => host));
    expect(names.sort()).toEqual(["facts", "target"]);
    const went = new Promise<void>((resolve) => {
      test.hosts.onPresence((event) => {
        if (event.host === "facts" && !event.online) resolve();
      });
    });
    await other.stop();
    await went;
    expect(await test.hosts.get(test.principal(), "facts")).toMatchObject({
      status: "offline",
      isagent: 1,
      config: { pid: String(process.pid) },
    });
    const place = { id: "hostinfo:facts", class: "/matrix/system/hostinfo" };
    const [row] = await test.objects.unrestricted.get(test.principal(), [place]);
    expect(row?.values["agentversion"]).toBe("test");
    expect(Number(row?.values["seen"])).toBeGreaterThanOrEqual(before);
  });

  // Together, as they wait for pauses of the agent.
  it.concurrent("tells of each policy whether it runs, and why not; it runs by itself when that is mended", async () => {
    const logs = join(folder, "late-logs");
    const policy = (name: string, spec: object) => ({
      name,
      revision: 1,
      spec: JSON.stringify({ name, ...spec }),
      depot: undefined,
    });
    const late = policy("late", { kind: "log", rule: "/r", dir: logs, match: "." });
    test.desired.set("matrix/telling", {
      revision: 1,
      policies: [{ ...late, conf: Buffer.from("a") }, policy("odd", { kind: "odd" })],
    });
    const telling = await startAgent("telling");
    const told = async (name: string) => (await test.hosts.get(test.principal(), "telling")).policies[name];
    const becomes = (state: string) =>
      eventually(state, 60_000, async () => (await told("late")) === state || undefined);
    await becomes(`failed: The folder ${logs} is not there.`);
    expect(await told("odd")).toBe("failed: This agent knows no policy of the kind odd.");
    expect((await test.hosts.get(test.principal(), "telling")).confs).toEqual({
      late: createHash("sha256").update("a").digest("hex"),
    });
    await mkdir(logs);
    await becomes("running");
    test.desired.set("matrix/telling", { revision: 2, policies: [late] });
    test.hosts.refresh("matrix", ["telling"]);
    const confs = async () => Object.keys((await test.hosts.get(test.principal(), "telling")).confs).length;
    await eventually("the conf is gone", 60_000, async () => (await confs()) === 0 || undefined);
    await telling.stop();
  }, 150_000);

  it.concurrent("goes to another controller at once when its own ends, and works there", async () => {
    const brief = await openTestHosts({ beside: test });
    const moving = await startAgent("moving", brief);
    const run = (hosts: TestHosts, commandId: string) => {
      const heard = { text: "" };
      const onOutput = ({ data }: { readonly data: Uint8Array }): void =>
        void (heard.text += Buffer.from(data).toString());
      const outcome = hosts.hosts.dispatch(
        hosts.principal(),
        "moving",
        { kind: "exec", line: "echo one; sleep 1; echo two" },
        { commandId, timeoutMs: 60_000, onOutput },
      );
      return {
        heard,
        outcome,
        first: eventually("its first output", 30_000, () => heard.text.includes("one") || undefined),
      };
    };
    await eventually(
      "the session is known here",
      30_000,
      async () => (await test.hosts.isOnline("matrix", "moving")) || undefined,
    );
    const across = run(test, "across");
    await across.first;
    await brief.server.close();
    expect(await across.outcome).toMatchObject({ state: "ok" });
    expect(across.heard.text).toBe("one\ntwo\n");
    const after = run(test, "after");
    expect(await after.outcome).toMatchObject({ state: "ok" });
    expect(after.heard.text).toBe("one\ntwo\n");
    await moving.stop();
    await brief[Symbol.asyncDispose]();
  });
});
