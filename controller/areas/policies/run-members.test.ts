import { expect, test } from "vitest";
import type { PolicySpec } from "../../../common/api/policies.ts";
import { checkSpec } from "./validation.ts";

const COMMAND = { kind: "command", name: "p", rule: "/r", command: "x", ctype: 1, interval: 5, unit: "minute" };
const check = (members: object) => checkSpec({ ...COMMAND, ...members } as PolicySpec);

test("members about runs are taken", () => {
  check({ timeout: 5, overlap: "replace", outputlimit: 1, backoff: 301, user: "web-1", environment: { A_1: "" } });
  check({ memorylimit: 1 << 30, cpulimit: 1, nice: 19 });
  check({ isdaemon: true, backoff: 1, user: "ann", nice: 0 });
  check({ isdaemon: true, overlap: "", user: "" });
});

test.each([
  [{ timeout: 0 }, /timeout/],
  [{ timeout: 86_400 }, /timeout/],
  [{ overlap: "allow" }, /overlap/],
  [{ nice: -1 }, /nice/],
  [{ memorylimit: 1 }, /memorylimit/],
  [{ user: "ann; reboot" }, /user/],
  [{ environment: { "A=B": "x" } }, /environment has "A=B", which names no variable/],
  [{ environment: { ODP_POLICY: "x" } }, /environment has ODP_POLICY: names with ODP_ are set by the agent/],
  [{ environment: { A: "\0" } }, /environment has A with a NUL character/],
  [{ environment: Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`A${n}`, ""])) }, /more than 100 names/],
])("%j is refused by its name", (members, message) => {
  expect(() => check(members)).toThrow(message);
});
