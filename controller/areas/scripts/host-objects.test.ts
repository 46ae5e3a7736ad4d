import { Type } from "typebox";
import { expect, test } from "vitest";
import { testPrincipal } from "../../../test/helpers/time/runtime.ts";
import { hostFunction, type HostObject, HostObjects } from "../../scripting/index.ts";
import { CONCURRENT_HOST_OBJECT } from "./host-objects.ts";

const made: unknown[] = [];
let underway = 0;
const BOX: HostObject = {
  name: "box",
  summary: "What scripts change here",
  functions: [
    hostFunction({
      name: "set",
      summary: "Changes it",
      parameters: [{ name: "value", schema: Type.Number() }],
      returns: "nothing",
      example: "box.set(1)",
      changes: true,
      call: async (_, value) => {
        underway += 1;
        await Promise.resolve();
        underway -= 1;
        if (value < 0) throw new Error("less than nothing");
        made.push(value);
        return undefined;
      },
    }),
  ],
};

function bind(beforeChange: () => Promise<void> = () => Promise.resolve()) {
  made.length = 0;
  return new HostObjects([BOX, CONCURRENT_HOST_OBJECT]).bind({
    principal: testPrincipal(),
    kind: "serverjs",
    log: () => undefined,
    beforeChange,
    load: () => Promise.reject(new Error("there is none")),
  });
}

test("a run that is over changes nothing, though it waited for its audit trail when it ended", async () => {
  const over = new AbortController();
  const host = bind(() => Promise.resolve(over.abort()));
  const call = { name: "box.set", args: [1], signal: over.signal };
  await expect(host.call(call)).rejects.toMatchObject({ code: "cancelled" });
  await expect(host.call(call)).rejects.toMatchObject({ code: "cancelled" });
  expect([made, [...host.changed]]).toEqual([[], []]);
});

test("of calls made at once none begins after the run is over, nor after one that failed", async () => {
  const over = new AbortController();
  let changes = 0;
  const lists = Array.from({ length: 100 }, (_, at) => [at]);
  const stopped = bind(() => Promise.resolve(++changes === 20 ? over.abort() : undefined));
  const run = (signal: AbortSignal, args: number[][]) => ({ name: "concurrent.run", args: ["box.set", args], signal });
  await expect(stopped.call(run(over.signal, lists))).rejects.toMatchObject({ code: "cancelled" });
  expect(made.length).toBeLessThan(20);
  const { signal } = new AbortController();
  await expect(bind().call(run(signal, [[1], [-1], ...lists]))).rejects.toThrow("less than nothing");
  expect([made.length < 20, underway]).toEqual([true, 0]);
});
