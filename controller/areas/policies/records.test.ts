import { afterAll, beforeAll, expect, test } from "vitest";
import { BASE_MS, openTestIngest, TestOutbox } from "../../../test/helpers/areas/ingest.ts";
import type { Entry } from "../../../proto/gen/agent/v1/agent.ts";
import { POLICY_GAP_PATH, POLICY_RUN_PATH } from "./index.ts";

let world: Awaited<ReturnType<typeof openTestIngest>>;
beforeAll(async () => {
  world = await openTestIngest();
});
afterAll(() => world[Symbol.asyncDispose]());

const entry = (sequence: number, body: Entry["body"]): Entry => ({
  sequence,
  timeMs: BASE_MS,
  traceparent: "",
  body,
});

test("a run of a policy and a gap are rows with all that the agent told of them", async () => {
  const run = { policy: "p", policyRevision: 1, state: "failed", code: 3, message: "no", records: 4 };
  const gap = { policy: "p", source: "/var/log/a", reason: "vanished", unit: "bytes", count: 5 };
  await new TestOutbox({ tenant: "matrix", host: "h1", streamId: "s" }).send(world.controller(), [
    entry(1, { $case: "run", value: { ...run, scheduledMs: BASE_MS, startedMs: BASE_MS + 1, endedMs: BASE_MS + 2 } }),
    entry(2, { $case: "gap", value: { ...gap, fromMs: BASE_MS - 2, toMs: BASE_MS - 1 } }),
  ]);
  expect(await world.rows(`/matrix${POLICY_RUN_PATH}`)).toEqual([
    {
      policy: "p",
      host: "h1",
      state: "failed",
      scheduled: BASE_MS,
      started: BASE_MS + 1,
      ended: BASE_MS + 2,
      code: 3,
      message: "no",
      records: 4,
    },
  ]);
  expect(await world.rows(`/matrix${POLICY_GAP_PATH}`)).toEqual([
    {
      policy: "p",
      host: "h1",
      source: "/var/log/a",
      reason: "vanished",
      unit: "bytes",
      count: 5,
      stime: BASE_MS - 2,
      etime: BASE_MS - 1,
    },
  ]);
});
