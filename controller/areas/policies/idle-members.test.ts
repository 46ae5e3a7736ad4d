import { expect, test } from "vitest";
import type { PolicySpec } from "../../../common/api/policies.ts";
import { idleMembers } from "./idle-members.ts";

const command = { kind: "command", name: "p", rule: "/r", command: "x", ctype: 1, interval: 1, unit: "hour" };
const log = { kind: "log", name: "p", rule: "/r", dir: "/var/log", match: "x" };
const idle = (spec: object) => idleMembers(spec as PolicySpec);

test.each([
  [log, { time_zone: "UTC", encoding: "gbk", heading: "first" }, []],
  [command, { time_zone: "UTC", encoding: "gbk", owner: "ops" }, []],
  [log, { timezone: "UTC" }, ["The attribute timezone has no effect; did you mean time_zone?"]],
  [command, { encodng: "gbk" }, ["The attribute encodng has no effect; did you mean encoding?"]],
  [command, { heading: "first" }, ["The attribute heading has no effect in a command policy."]],
])("of a policy %j with the attributes %j, the idle ones that seem to be meant are %j", (policy, attrs, told) => {
  expect(idle({ ...policy, attrs })).toEqual(told);
});

test("a plain command with members of a depot is told so", () => {
  expect(idle({ ...command, depotname: "d", depotversion: "1.0.0", depotcommand: "" })).toEqual([
    "depotname, depotversion: without effect with ctype 1, which runs a plain command.",
  ]);
  expect(idle({ ...command, ctype: 0, depotname: "d", depotversion: "1.0.0", depotcommand: "x" })).toEqual([]);
});

test("members about records and the order of files that have no effect are told", () => {
  const unsplit = "delimiter: without effect without split, as the whole output of a run is one record.";
  expect(idle({ ...command, delimiter: "^x" })).toEqual([unsplit]);
  expect(idle({ ...command, delimiter: "^x", split: true, delimitereol: true })).toEqual([]);
  expect(idle({ ...command, delimiter: "^x", isdaemon: true })).toEqual([]);
  const unended = "delimitereol: without effect without delimiter, as a line feed always ends a record.";
  expect(idle({ ...log, delimitereol: true, delimiter: "" })).toEqual([unended]);
  const translation = { day: { mon: 1 }, part: { a: 1 } };
  expect(idle({ ...log, translation, priority: ["day"] })).toEqual([
    "translation of part: without effect, as priority does not name the group.",
  ]);
  expect(idle({ ...log, translation, priority: ["part", "day"] })).toEqual([]);
});

test("members about runs that a daemon lacks, and a pause that skips no run, are told", () => {
  const runs = { timeout: 5, overlap: "skip", outputlimit: 9 };
  expect(idle({ ...command, ...runs, isdaemon: true })).toEqual([
    "timeout, overlap, outputlimit: without effect with isdaemon, as a daemon has no runs that are due and end.",
  ]);
  expect(idle({ ...command, ...runs, backoff: 3_601 })).toEqual([]);
  const short = "backoff: without effect, as a pause of 3600 seconds skips no run of an interval of 3600.";
  expect(idle({ ...command, backoff: 3_600 })).toEqual([short]);
  expect(idle({ ...command, backoff: 5, unit: "year" })).toHaveLength(1);
  expect(idle({ ...command, backoff: 5, isdaemon: true })).toEqual([]);
});
