import { expect, test } from "vitest";
import type { PolicySpec } from "../api/policies.ts";
import { policyOfText, policyText } from "./policy-text.ts";

const COMMAND = { kind: "command", name: "p", rule: "/r", command: "x", ctype: 1, interval: 1, unit: "hour" } as const;

test("a policy without members about its runs is the same for each version of the agent", () => {
  for (const spec of [COMMAND, { ...COMMAND, user: "", overlap: "" } as const])
    expect(JSON.parse(policyText(spec))).toEqual(spec);
});

test("an agent that does not know members about runs knows no such kind, and one that does gets the policy", () => {
  const spec: PolicySpec = { ...COMMAND, timeout: 5, user: "ann" };
  expect(JSON.parse(policyText(spec))).toEqual({ ...spec, kind: "command with timeout, user" });
  expect(policyOfText(policyText(spec))).toEqual(spec);
});

test("an agent names the members that a newer controller knows and it does not", () => {
  const newer = policyText({ ...COMMAND, nice: 5 }).replace("with nice", "with nice, network");
  expect(() => policyOfText(newer)).toThrow("This agent is too old for the members network of the policy.");
});
