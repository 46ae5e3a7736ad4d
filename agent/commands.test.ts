import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { controller, folder, useAgents, startAgent, exec, output } from "../test/helpers/hosts/agent-world.ts";

useAgents();

describe("commands", () => {
  it("stream their output and end in one result", async () => {
    startAgent();
    await controller.connected();
    controller.command({
      id: "c1",
      body: exec("echo one; echo two >&2; cat; exit 3", { stdin: "in", streamOutput: true }),
    });
    await controller.until("result", () => controller.bodies("result").length === 1);
    expect(controller.bodies("result")[0]).toMatchObject({ commandId: "c1", state: "failed", code: 3 });
    expect(output("c1", false)).toBe("one\nin");
    expect(output("c1", true)).toBe("two\n");
    expect(controller.states).toEqual([{ commandId: "c1", state: "accepted", message: "" }]);
  });

  it("run once however often they come", async () => {
    startAgent();
    await controller.connected();
    const body = exec(`echo x >> ${folder}/ran`);
    controller.command({ id: "c1", body });
    controller.command({ id: "c1", body });
    await controller.until("result", () => controller.bodies("result").length === 1);
    controller.command({ id: "c1", body });
    controller.command({ id: "c2", body: exec("true") });
    await controller.until("second result", () => controller.bodies("result").length === 2);
    expect(await readFile(join(folder, "ran"), "utf8")).toBe("x\n");
    expect(controller.states.map(({ commandId, state }) => `${commandId} ${state}`)).toEqual([
      "c1 accepted",
      "c1 accepted",
      "c1 accepted",
      "c2 accepted",
    ]);
  });

  it("end at their deadline by the controller's clock, with all they started", async () => {
    startAgent();
    await controller.connected();
    // The controller's clock is an hour behind.
    const sentMs = Date.now() - 3_600_000;
    controller.command({
      id: "c1",
      sentMs,
      deadlineMs: sentMs + 300,
      body: exec(`(sleep 5; echo late > ${folder}/late) & sleep 20`),
    });
    controller.command({ id: "c2", sentMs, deadlineMs: sentMs - 1, body: exec("true") });
    await controller.until("results", () => controller.bodies("result").length === 2);
    expect(controller.bodies("result").find(({ commandId }) => commandId === "c1")).toMatchObject({
      signal: "SIGTERM",
      pid: expect.any(Number) as number,
    });
    expect(Object.fromEntries(controller.bodies("result").map(({ commandId, state }) => [commandId, state]))).toEqual({
      c1: "timeout",
      c2: "expired",
    });
  });

  it("can be cancelled, by whoever has the highest epoch", async () => {
    startAgent();
    await controller.connected();
    controller.command({ id: "c1", body: exec("sleep 30") });
    await controller.until("accepted", () => controller.states.length === 1);
    controller.send({ $case: "cancel", value: { commandId: "c1", epoch: controller.epoch - 1 } });
    controller.command({ id: "old", epoch: controller.epoch - 1, body: exec("true") });
    await controller.until("refused", () => controller.states.length === 2);
    expect(controller.states[1]).toMatchObject({ commandId: "old", state: "refused" });
    expect(controller.bodies("result")).toEqual([]);
    controller.send({ $case: "cancel", value: { commandId: "c1", epoch: controller.epoch } });
    await controller.until("result", () => controller.bodies("result").length === 1);
    expect(controller.bodies("result")[0]).toMatchObject({ commandId: "c1", state: "cancelled" });
  });

  it("do not wait for what they left running in the background", async () => {
    startAgent();
    await controller.connected();
    controller.command({ id: "c1", body: exec("sleep 30 & echo done") });
    await controller.until("result", () => controller.bodies("result").length === 1, 5_000);
    expect(output("c1", false)).toBe("done\n");
    expect(controller.bodies("result")[0]?.state).toBe("ok");
  });

  it("get the result `interrupted` when the agent ends in good order", async () => {
    const agent = startAgent();
    await controller.connected();
    controller.command({ id: "c1", body: exec("sleep 30") });
    await controller.until("accepted", () => controller.states.length === 1);
    agent.end.abort();
    await agent.done;
    expect(controller.bodies("result")[0]).toMatchObject({ commandId: "c1", state: "interrupted" });
  });
});
