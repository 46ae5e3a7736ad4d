import type { Call } from "../declared/call.ts";
import { UsageError } from "../declared/usage.ts";

/**
 * The new password, which is never an argument: other users of a machine see those. It is all of the standard input with
 * `--password-stdin`, and asked for without it.
 */
export async function newPassword(call: Call, question: string): Promise<string> {
  if (!call.is("password-stdin")) return chosen(call, question);
  const text = (await call.shell.input("-")).toString("utf8").replace(/\r?\n$/, "");
  if (text === "") throw new UsageError("The standard input has no password.");
  if (/[\r\n]/.test(text)) throw new UsageError("The standard input has several lines: give the password alone.");
  return text;
}

/** Asks for a new password. Typed text is not shown, so a terminal asks twice. */
async function chosen({ shell }: Call, question: string): Promise<string> {
  const password = await shell.secret(question);
  if (shell.isTyped && (await shell.secret("The same again: ")) !== password)
    throw new UsageError("The two passwords differ. Nothing was changed.");
  return password;
}

/** The new password of the caller, and the present one, which the controller wants to see. */
export interface OwnPassword {
  readonly password: string;
  readonly passwd: string;
}

/** As `newPassword`, for the caller. With `--password-stdin`, the first line is the present password. */
export async function ownPassword(call: Call): Promise<OwnPassword> {
  const { shell } = call;
  if (!call.is("password-stdin"))
    return { password: await shell.secret("Your present password: "), passwd: await chosen(call, "New password: ") };
  const lines = (await shell.input("-"))
    .toString("utf8")
    .replace(/\r?\n$/, "")
    .split(/\r?\n/);
  const [password, passwd] = lines;
  if (password === undefined || passwd === undefined || passwd === "" || lines.length !== 2)
    throw new UsageError("For your own password the standard input has two lines: the present one, then the new one.");
  return { password, passwd };
}
