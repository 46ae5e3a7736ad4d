import { expect, test } from "vitest";
import { TestClock, testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import type { Edit } from "../objects/index.ts";
import { HostStatus } from "./status.ts";

test("the time of a status stays while the status does, also when the agent comes again", async () => {
  const clock = new TestClock();
  let isOnline = true;
  const record = new Map<string, unknown>();
  const status = new HostStatus({
    records: {
      find: () => Promise.resolve(Object.fromEntries(record) as never),
      note: (_principal, _host, edits: readonly Edit[]) => {
        for (const edit of edits) record.set(edit.column, "value" in edit ? edit.value : undefined);
        return Promise.resolve(true);
      },
    },
    presence: { isOnline: () => Promise.resolve(isOnline), forget: () => Promise.resolve(true) } as never,
    runtime: testRuntime(clock),
    controllerId: "one",
    actAs: () => Promise.resolve(testPrincipal()),
  });
  const changed = async () => {
    await status.changed({ tenant: "matrix", host: "web" });
    return [record.get("status"), record.get("statustime")];
  };
  const cameMs = clock.nowMs();
  expect(await changed()).toEqual(["online", cameMs]);
  clock.advance(1_000);
  expect(await changed()).toEqual(["online", cameMs]);
  isOnline = false;
  expect(await changed()).toEqual(["offline", cameMs + 1_000]);
  await status.close();
});
