import { afterAll, beforeAll, expect, test } from "vitest";
import { BareAgent, openTestHosts, type TestHosts } from "../../../../test/helpers/hosts.ts";

let hosts: TestHosts;

beforeAll(async () => {
  hosts = await openTestHosts();
});

afterAll(() => hosts[Symbol.asyncDispose]());

test("a command that waits is sent again in the next session of its host, under that session's epoch", async () => {
  const identity = await hosts.enrol("again");
  const first = new BareAgent(hosts.agentPort, identity);
  await first.hello();
  const outcome = hosts.hosts.dispatch(
    hosts.principal(),
    "again",
    { kind: "exec", line: "true" },
    { commandId: "twice", timeoutMs: 60_000 },
  );
  const sent = await first.next("command");
  first.close();
  const second = new BareAgent(hosts.agentPort, identity);
  await second.hello();
  const again = await second.next("command");
  expect(again.id).toBe("twice");
  expect(again.epoch).toBeGreaterThan(sent.epoch);
  second.send({ $case: "command", value: { commandId: "twice", state: "refused", message: "seen" } });
  expect(await outcome).toMatchObject({ state: "failed", message: "seen" });
  second.close();
});
