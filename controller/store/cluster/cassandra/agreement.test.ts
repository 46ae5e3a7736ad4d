import { expect, test } from "vitest";
import type { Clock } from "../../../../common/time.ts";
import { realClock } from "../../../../test/helpers/time/clock.ts";
import { testRuntime } from "../../../../test/helpers/time/runtime.ts";
import { schemaAgreed, type SchemaNode } from "./agreement.ts";
import { Deadline } from "../deadline.ts";

const LOOKS = 12;
/** A clock whose pauses end at once. */
const hasty: Clock = { ...realClock, after: (_, callback) => realClock.after(0, callback) };

/** Nodes that report the given versions in turn, the last one forever; "" is no answer. */
function nodesOf(...versions: readonly (readonly string[])[]): SchemaNode[] {
  return versions.map((said, at) => {
    const rest = [...said];
    return {
      address: `10.0.0.${at + 1}:9042`,
      version: () => {
        const next = rest.length > 1 ? rest.shift() : rest[0];
        return next ? Promise.resolve(next) : Promise.reject(new Error("silent"));
      },
    };
  });
}

async function waited(
  lengthMs: number,
  nodes: () => readonly SchemaNode[],
): Promise<{ readonly warnings: readonly unknown[]; readonly error: unknown }> {
  const { random, log } = testRuntime();
  const warnings: unknown[] = [];
  const telling = Object.assign(Object.create(log) as typeof log, { warn: (entry: unknown) => warnings.push(entry) });
  const deadline = new Deadline(hasty, random, lengthMs);
  const error: unknown = await schemaAgreed(nodes, deadline, telling).catch((reason: unknown) => reason);
  return { warnings, error };
}

test("a node that gets its tables late, or is silent for a moment, is waited for and named once", async () => {
  const late = [...Array.from({ length: LOOKS }, (_, at) => (at === 1 ? "" : "v1")), "v2"];
  const nodes = nodesOf(["v2"], late, ["v2"]);
  const { warnings, error } = await waited(60_000, () => nodes);
  expect(error).toBeUndefined();
  expect(warnings).toEqual([{ nodes: "10.0.0.1:9042 has v2, 10.0.0.2:9042 has v1, 10.0.0.3:9042 has v2" }]);
});

test("a node that is counted as down meanwhile is waited for no longer", async () => {
  const nodes = nodesOf(["v2"], ["v1"], ["v2"]);
  let looks = 0;
  const { error } = await waited(60_000, () => nodes.filter((_, at) => at !== 1 || looks++ < LOOKS));
  expect([error, looks]).toEqual([undefined, LOOKS + 1]);
});

test("nodes that do not agree by the deadline are named", async () => {
  const nodes = nodesOf(["v2"], [""]);
  const { error } = await waited(30, () => nodes);
  expect(error).toMatchObject({
    code: "unknown_outcome",
    message: expect.stringContaining("10.0.0.1:9042 has v2, 10.0.0.2:9042 has no answer"),
  });
});

test("nodes that agree within moments are no warning", async () => {
  const nodes = nodesOf(["v2"], ["v1", "v2"]);
  expect(await waited(60_000, () => nodes)).toEqual({ warnings: [], error: undefined });
});

test("one node agrees with itself, and is not asked", async () => {
  expect(await waited(60_000, () => nodesOf([""]))).toEqual({ warnings: [], error: undefined });
});
