import { expect, test } from "vitest";
import { SSH_JOURNAL_KEEP_MS } from "../../../../common/limits.ts";
import { openTestEngine } from "../../../../test/helpers/engines/engine.ts";
import { TestClock } from "../../../../test/helpers/time/runtime.ts";
import type { CommandOutcome, Target } from "../types.ts";
import { SshJournal } from "./journal.ts";

const TARGET = { tenant: "matrix", host: "web-1" } as Target;

test("a command is begun once per id and host, and how it ended is known as long as it is kept", async () => {
  const clock = new TestClock();
  await using engine = await openTestEngine({ clock });
  const journal = new SshJournal({ kv: async (tenant) => (await engine.tenant(tenant)).kv, clock });
  const begin = (id: string, host = "web-1") => journal.begin({ ...TARGET, host }, id);
  const startedMs = clock.nowMs();

  expect([await begin("a"), await begin("a", "web-2"), await begin("b")]).toEqual([undefined, undefined, undefined]);
  expect(await begin("a")).toMatchObject({
    state: "failed",
    startedMs,
    message: expect.stringContaining("begun before"),
  });
  const outcome: CommandOutcome = { host: "web-1", state: "ok", code: 0, message: "", startedMs, endedMs: startedMs };
  clock.advance(SSH_JOURNAL_KEEP_MS - 1);
  await journal.finish(TARGET, "a", outcome);
  expect(await begin("a")).toEqual(outcome);
  expect(await begin("b")).toMatchObject({ state: "failed" });
  clock.advance(1);
  expect([await begin("a"), await begin("b")]).toEqual([undefined, undefined]);
});
