import { expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import { UNAUDITED } from "../../../test/helpers/areas/audit.ts";
import { TestClock, testPrincipal, testRuntime } from "../../../test/helpers/time/runtime.ts";
import type { TriggerDefinition } from "../objects/index.ts";
import { TriggerLog } from "./log.ts";
import { TriggerRunner } from "./runner.ts";

const AUTHOR = testPrincipal();
const TRIGGER: TriggerDefinition = {
  class: "/matrix/box",
  name: "guard",
  text: "",
  language: "lua",
  before: true,
  level: 0,
  disabled: false,
  author: AUTHOR.user,
  modifiedAtMs: 1,
};
const WRITE = { action: "INSERT", class: "/matrix/box", id: "box:a", object: {}, old: undefined } as const;

/** Runs the trigger with a text that ends with this error. */
function endingWith(error: Error): Promise<unknown> {
  const runtime = testRuntime(new TestClock());
  const runner = new TriggerRunner({
    engine: { run: () => Promise.reject(error) },
    host: (principal) => ({ principal, changed: new Set(), call: () => Promise.reject(new Error("not called")) }),
    audit: UNAUDITED,
    author: () => Promise.resolve(AUTHOR),
    runtime,
    log: new TriggerLog({ runtime, logs: { append: () => Promise.resolve() } }),
  });
  return runner.run(TRIGGER, AUTHOR, WRITE);
}

test.each(["unavailable", "limited", "cancelled", "unknown_outcome"] as const)(
  "a run that could not be made now (%s) is no refusal: its caller sees that error",
  async (code) => {
    const error = new AppError(code, "not now");
    await expect(endingWith(error)).rejects.toBe(error);
  },
);

test("a fault of the program is no refusal", async () => {
  const error = new TypeError("a fault");
  await expect(endingWith(error)).rejects.toBe(error);
});

test("a failure of the text refuses the write, with the name of the trigger", async () => {
  const error = new AppError("syntax", "line 1", { details: { line: 1 } });
  await expect(endingWith(error)).rejects.toMatchObject({
    code: "invalid",
    message: "line 1",
    details: { line: 1, trigger: "/matrix/box#guard" },
  });
});
