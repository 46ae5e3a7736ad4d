import { afterAll, beforeAll, expect, test } from "vitest";
import { BareAgent, openTestHosts, type TestHosts } from "../../../../test/helpers/hosts/hosts.ts";

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

test("a host that is away when its command is cancelled is told when it comes back, and begins nothing", async () => {
  const identity = await hosts.enrol("away");
  const first = new BareAgent(hosts.agentPort, identity);
  await first.hello();
  const caller = new AbortController();
  const outcome = hosts.hosts.dispatch(
    hosts.principal(),
    "away",
    { kind: "exec", line: "true" },
    { commandId: "held", timeoutMs: 60_000, signal: caller.signal },
  );
  await first.next("command");
  first.close();
  await expect.poll(() => hosts.hosts.isOnline("matrix", "away"), { timeout: 30_000 }).toBe(false);
  caller.abort();
  const second = new BareAgent(hosts.agentPort, identity);
  await second.hello({ streamId: "stream-away" });
  // A host that does not know a command without time left never starts it.
  const again = await second.next("command");
  expect({ id: again.id, leftMs: again.deadlineMs - again.sentMs }).toEqual({ id: "held", leftMs: 0 });
  expect(await second.next("cancel")).toMatchObject({ commandId: "held", epoch: again.epoch });
  const value = {
    commandId: "held",
    state: "cancelled",
    code: 143,
    message: "ended by SIGTERM",
    signal: "SIGTERM",
    pid: 4_711,
    startedMs: 1,
    endedMs: 2,
  };
  second.send({
    $case: "batch",
    value: {
      streamId: "stream-away",
      entries: [{ sequence: 1, timeMs: 1, traceparent: "", body: { $case: "result", value } }],
    },
  });
  const ended = { state: "cancelled", message: "ended by SIGTERM", signal: "SIGTERM", pid: 4_711 };
  expect(await outcome).toMatchObject(ended);
  second.close();
});
