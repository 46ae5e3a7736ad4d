import type { Call } from "../declared/call.ts";
import { UsageError } from "../declared/usage.ts";

/**
 * The new password, which is never an argument: other users of a machine see those. It is all of the standard input with
 * `--password-stdin`, and asked for without it.
 */
export async function newPassword(call: Call, question: string): Promise<string> {
  if (!call.is("password-stdin")) return call.shell.secret(question);
  const text = (await call.shell.input("-")).toString("utf8").replace(/\r?\n$/, "");
  if (text === "") throw new UsageError("The standard input has no password.");
  if (/[\r\n]/.test(text)) throw new UsageError("The standard input has several lines: give the password alone.");
  return text;
}
