import { expect, test } from "vitest";
import { Call } from "../declared/call.ts";
import { newPassword, ownPassword } from "./passwords.ts";

/** A use of a command whose user types these answers, one to a question. */
function typed(answers: readonly string[], isTyped: boolean): Call {
  const left = [...answers];
  const secret = () => Promise.resolve(left.shift() ?? "");
  return new Call({}, { isTyped, secret } as never);
}

test("a terminal asks twice for a new password, since typed text is not shown", async () => {
  expect(await newPassword(typed(["kestrel", "kestrel"], true), "?")).toBe("kestrel");
  await expect(newPassword(typed(["kestrel", "kestral"], true), "?")).rejects.toThrow("The two passwords differ.");
  expect(await newPassword(typed(["kestrel"], false), "?")).toBe("kestrel");
});

test("one's own new password as well, but the present one once", async () => {
  const own = { password: "osprey", passwd: "kestrel" };
  expect(await ownPassword(typed(["osprey", "kestrel", "kestrel"], true))).toEqual(own);
  await expect(ownPassword(typed(["osprey", "kestrel", "osprey"], true))).rejects.toThrow("differ");
  expect(await ownPassword(typed(["osprey", "kestrel"], false))).toEqual(own);
});
