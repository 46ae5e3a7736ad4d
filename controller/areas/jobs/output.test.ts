import { expect, it } from "vitest";
import { RunOutput } from "./output.ts";

it("ends although more came after a write that failed", async () => {
  const failure = new Error("the store is away");
  const output = new RunOutput(() => Promise.reject(failure));
  output.take({ stderr: false, data: Buffer.from("before") });
  await new Promise((resolve) => setImmediate(resolve));
  output.take({ stderr: false, data: Buffer.from(" after") });
  // A loop that never lets go would hold up everything: told by a flag instead of a hanging test.
  expect(output.writing).toBe(false);
  expect(await output.finish()).toBe(failure);
  expect(output.text).toBe("before after");
});
