import { execFileSync } from "node:child_process";
import { mkdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  controller,
  folder,
  useAgents,
  startAgent,
  exec,
  depot,
  result,
  output,
  commandPolicy,
} from "../test/helpers/hosts/agent-world.ts";

useAgents();

describe("depots", () => {
  it("are put in place, run, used by jobs and policies, replaced, and taken away", async () => {
    startAgent();
    await controller.connected();
    controller.command({
      id: "d1",
      body: { $case: "deploy", value: depot("tool", "1.0.0", { "bin/hello": "echo hello 1" }, "cp bin/hello copied") },
    });
    await result("d1", "ok");
    controller.command({ id: "j1", body: exec("cat copied; ./bin/hello", { depot: "tool" }) });
    await result("j1", "ok");
    expect(output("j1", false)).toBe("echo hello 1hello 1\n");
    controller.command({
      id: "d2",
      body: { $case: "deploy", value: depot("tool", "2.0.0", { "bin/hello": "echo hello 2" }, "") },
    });
    await result("d2", "ok");
    const policy = commandPolicy({ command: "./bin/hello", ctype: 0, interval: 1, unit: "second" });
    controller.want({
      revision: 1,
      policies: [{ ...policy, depot: depot("tool", "2.0.0", { "bin/hello": "echo hello 2" }, "") }],
    });
    await controller.until("records", () => controller.records("p").length > 0);
    expect(controller.records("p")[0]).toBe("hello 2");
    controller.want({ revision: 2, policies: [] });
    controller.command({
      id: "u1",
      body: { $case: "undeploy", value: { name: "tool", version: "2.0.0", command: "", remotePath: "" } },
    });
    await result("u1", "ok");
    await expect(stat(join(folder, "depots/tool"))).rejects.toMatchObject({ code: "ENOENT" });
  });

  it("that would leave their folder, or are not what their digest says, are refused and change nothing", async () => {
    startAgent();
    await controller.connected();
    controller.command({ id: "d1", body: { $case: "deploy", value: depot("tool", "1.0.0", { a: "one" }, "") } });
    await result("d1", "ok");
    controller.command({
      id: "d2",
      body: { $case: "deploy", value: depot("tool", "2.0.0", { "../outside": "x" }, "") },
    });
    await result("d2", "failed");
    const wrong = depot("tool", "2.0.0", { a: "two" }, "");
    controller.contents.set(wrong.files[0]?.digest ?? "", Buffer.from("six"));
    controller.command({ id: "d3", body: { $case: "deploy", value: wrong } });
    await result("d3", "failed");
    expect(await readFile(join(folder, "depots/tool/current/a"), "utf8")).toBe("one");
  });

  it("go back to the version before when their command fails", async () => {
    startAgent();
    await controller.connected();
    controller.command({ id: "d1", body: { $case: "deploy", value: depot("tool", "1.0.0", { a: "one" }, "") } });
    await result("d1", "ok");
    controller.command({
      id: "d2",
      body: { $case: "deploy", value: depot("tool", "2.0.0", { a: "two" }, "echo broken; exit 7") },
    });
    await result("d2", "failed");
    expect(controller.bodies("result").at(-1)).toMatchObject({ code: 7, message: expect.stringContaining("broken") });
    expect(await readFile(join(folder, "depots/tool/current/a"), "utf8")).toBe("one");
  });

  it("that are deployed at the same time follow one another, so a failed one does not undo a later one", async () => {
    startAgent();
    await controller.connected();
    const deploy = (id: string, version: string, command = "") =>
      controller.command({ id, body: { $case: "deploy", value: depot("tool", version, { a: version }, command) } });
    deploy("d1", "1.0.0");
    await result("d1", "ok");
    const fifo = join(folder, "fifo");
    execFileSync("mkfifo", [fifo]);
    deploy("d2", "2.0.0", `cat '${fifo}'; exit 7`);
    const value = { name: "tool", version: "1.0.0", command: "", remotePath: "" };
    controller.command({ id: "u1", body: { $case: "undeploy", value } });
    deploy("d3", "3.0.0");
    await controller.until("accepted", () => controller.states.some(({ commandId }) => commandId === "d3"));
    await writeFile(fifo, "");
    await result("d2", "failed");
    await result("d3", "ok");
    expect(await readFile(join(folder, "depots/tool/current/a"), "utf8")).toBe("3.0.0");
    await result("u1", "ok");
    expect(controller.bodies("result").find(({ commandId }) => commandId === "u1")).toMatchObject({ message: "" });
  });

  it("that were put at a remote path stay there when a policy needs them, in the version that it needs", async () => {
    const target = join(folder, "target");
    startAgent();
    await controller.connected();
    const first = depot("tool", "1.0.0", { "bin/hello": "echo hello 1" }, "");
    controller.command({ id: "d1", body: { $case: "deploy", value: { ...first, remotePath: target } } });
    await result("d1", "ok");
    const policy = commandPolicy({ command: "./bin/hello", ctype: 0, interval: 1, unit: "second" });
    controller.want({ revision: 1, policies: [{ ...policy, depot: first }] });
    await controller.until("hello 1", () => controller.records("p").includes("hello 1"));
    expect(await readFile(join(target, "bin/hello"), "utf8")).toBe("echo hello 1");
    const second = depot("tool", "2.0.0", { "bin/hello": "echo hello 2" }, "");
    controller.want({ revision: 2, policies: [{ ...policy, depot: second }] });
    await controller.until("hello 2", () => controller.records("p").includes("hello 2"));
    expect(await readFile(join(target, "bin/hello"), "utf8")).toBe("echo hello 2");
  });

  it("with a remote path leave everything else there alone", async () => {
    const target = join(folder, "target");
    await mkdir(target);
    await writeFile(join(target, "mine"), "mine");
    startAgent();
    await controller.connected();
    controller.command({
      id: "d1",
      body: { $case: "deploy", value: { ...depot("tool", "1.0.0", { "etc/a": "one" }, ""), remotePath: target } },
    });
    await result("d1", "ok");
    expect(await readFile(join(target, "etc/a"), "utf8")).toBe("one");
    controller.command({
      id: "u1",
      body: { $case: "undeploy", value: { name: "tool", version: "", command: "", remotePath: target } },
    });
    await result("u1", "ok");
    await expect(stat(join(target, "etc/a"))).rejects.toMatchObject({ code: "ENOENT" });
    expect(await readFile(join(target, "mine"), "utf8")).toBe("mine");
  });
});
