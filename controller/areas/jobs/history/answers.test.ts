import { expect, test } from "vitest";
import { executionsOf } from "./answers.ts";

const run = (host: string, state = "ok", message = "") => ({ host, state, message });

test("the executions of a batch are the hosts of its jobs, and each job that has none", () => {
  const ends = executionsOf([
    { name: "a@x", status: "ok", message: "", runs: [run("h1"), run("h2", "timeout")] },
    { name: "b@x", status: "error", code: "limited", message: "Too many runs." },
    { name: "c@x", status: "ok", message: "01ARZ" },
    { name: "d@x", status: "error", message: "h3: unreachable", runs: [run("h3", "unreachable", "No host h3.")] },
  ]);
  expect(ends).toEqual({
    faults: ["a@x on h2: timeout.", "b@x: Too many runs.", "d@x on h3: unreachable, No host h3."],
    of: 5,
  });
});
