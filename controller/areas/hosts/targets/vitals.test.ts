import { expect, test } from "vitest";
import { changesTargets } from "./vitals.ts";

test.each([
  ["tags", ["a"], true],
  ["status", "online", false],
  ["seen", 1, false],
  ["statustime", 1, false],
  ["policytimes", {}, false],
  ["usage", {}, false],
  ["config", { load_1m: "2", pid: "7" }, false],
  ["config", { load_1m: "2", site: "a" }, true],
])("%s: %j changes targets: %s", (column, value, changes) => {
  expect(changesTargets({ column, operation: column === "config" ? "add" : "set", value })).toBe(changes);
});
