import { Writable } from "node:stream";
import { pino } from "pino";
import { expect, test } from "vitest";
import { AppError } from "../../../common/errors.ts";
import { asAppError, failureEnvelope, logFault } from "./failure.ts";

const TRACE = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01";

function logged(...errors: readonly unknown[]): readonly string[] {
  let text = "";
  const stream = new Writable({
    write(chunk: Buffer, _encoding, done) {
      text += chunk.toString("utf8");
      done();
    },
  });
  for (const error of errors) logFault(pino(stream), asAppError(error), TRACE);
  return text.split("\n").slice(0, -1);
}

test("a fault of ours is logged with the trace its caller is told, and what is no fault is not", () => {
  const fault = new Error("the store said no");
  const [line = "", ...others] = logged(fault, new AppError("not_found", "There is none."));
  expect(others).toEqual([]);
  expect(JSON.parse(line)).toMatchObject({ level: 50, traceparent: TRACE, err: { message: "the store said no" } });
  const told = JSON.stringify(failureEnvelope(asAppError(fault), TRACE));
  expect(told).toContain("0123456789abcdef0123456789abcdef");
  expect(told).not.toContain("the store said no");
});

test("what an error says makes no second line of the log", () => {
  const forged = 'gone\n{"level":30,"msg":"signed in","user":"admin"}\r\n\u2028';
  const lines = logged(new Error(forged));
  expect(lines).toHaveLength(1);
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({
    msg: "a call failed by a fault of ours",
    err: { message: forged },
  });
});

test("the details of a failure are sent beside its text, and none of a fault of ours", () => {
  const details = { line: 2, column: 7, nearest: undefined };
  expect(failureEnvelope(new AppError("syntax", "Not so.", { details }), TRACE)).toEqual({
    status: "error",
    message: "Not so.",
    error: "Not so.",
    code: "syntax",
    details: { line: 2, column: 7 },
  });
  expect(failureEnvelope(new AppError("invalid", "Not so."), TRACE)).not.toHaveProperty("details");
  expect(failureEnvelope(new AppError("internal", "A bug.", { details }), TRACE)).not.toHaveProperty("details");
});

test("members of the details beyond their bound are left out, which is told", () => {
  const errors = Array.from({ length: 1_000 }, (_, line) => ({ line, error: "unreadable" }));
  const error = new AppError("invalid", "No line was read.", { details: { failed: 1_000, errors, line: 3 } });
  expect(failureEnvelope(error, TRACE).details).toEqual({
    failed: 1_000,
    line: 3,
    cut: "HTTP_DETAILS_MAX_CHARACTERS",
  });
});
