import { expect, it } from "vitest";
import type { Emission } from "../../outbox/outbox.ts";
import type { Host } from "../../policies/host.ts";
import { Run } from "./run.ts";
import { TestClock } from "../../../test/helpers/time/runtime.ts";

it("that is told to stop while its records wait for room keeps them for its end, and counts what it sent", async () => {
  const sent: Emission[] = [];
  const emit: Host["emit"] = (emissions, options) => {
    if (options?.signal?.aborted) return Promise.reject(new Error("given up"));
    sent.push(...emissions);
    return Promise.resolve();
  };
  const host = { clock: new TestClock(), emit } as Partial<Host> as Host;
  const policy = { name: "p", revision: 1, spec: "", depot: undefined };
  const run = await Run.begin({
    host,
    policy,
    spec: { rule: "r" },
    scheduledMs: 1_000,
    signal: new AbortController().signal,
  });
  await run.add([{ bytes: Buffer.from("one"), offset: 0, cut: false }], AbortSignal.abort());
  await expect(run.flush(AbortSignal.abort())).rejects.toThrow("given up");
  await run.end({ state: "interrupted", code: -1, message: "" });
  const lines = sent.flatMap(({ body }) => (body.$case === "records" ? body.value.records.map(String) : []));
  expect(lines).toEqual(["one"]);
  expect(sent.at(-1)?.body).toMatchObject({ $case: "run", value: { records: 1 } });
});
