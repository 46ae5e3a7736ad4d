import { spawn } from "node:child_process";
import { AppError } from "../../common/errors.ts";
import { SECRET_KEY_COMMAND_DEADLINE_MS, SECRET_KEY_TEXT_MAX_BYTES } from "../../common/limits.ts";
import { parseSecretKeys } from "../../common/secret-key.ts";
import { secretBox, type KeyRing } from "./key-ring.ts";

export interface KeyCommandOptions {
  /** A line for the shell, such as `vault kv get -field=key secret/odp`. */
  readonly command: string;
  /** `SECRET_KEY_COMMAND_DEADLINE_MS` when absent. */
  readonly deadlineMs?: number;
}

/**
 * The keys that a command writes, in the form of a key file. `AppError("unavailable")` when it fails, writes more than
 * `SECRET_KEY_TEXT_MAX_BYTES`, or has not ended by its deadline: then it is killed with all it started. What it writes
 * as output is in no error.
 */
export async function secretKeyOfCommand(options: KeyCommandOptions): Promise<KeyRing> {
  const read = async () => parseSecretKeys(await outputOf(options), "What the command of secret_key_command writes");
  return secretBox(await read(), read);
}

function outputOf({ command, deadlineMs = SECRET_KEY_COMMAND_DEADLINE_MS }: KeyCommandOptions): Promise<string> {
  return new Promise((resolve, reject) => {
    // A group of its own, so that nothing it started is left.
    const child = spawn("/bin/sh", ["-c", command], { detached: true, stdio: ["ignore", "pipe", "inherit"] });
    const pieces: Buffer[] = [];
    let bytes = 0;
    const fail = (why: string): void => {
      clearTimeout(timer);
      if (child.pid !== undefined) killGroup(child.pid);
      child.stdout.destroy();
      reject(new AppError("unavailable", `The command of secret_key_command (ODP_SECRET_KEY_COMMAND) ${why}.`));
    };
    const timer = setTimeout(() => fail(`did not end within ${deadlineMs} ms`), deadlineMs);
    child.stdout.on("data", (piece: Buffer) => {
      bytes += piece.length;
      if (bytes > SECRET_KEY_TEXT_MAX_BYTES) fail(`wrote more than ${SECRET_KEY_TEXT_MAX_BYTES} bytes`);
      else pieces.push(piece);
    });
    child.on("error", () => fail("could not be started"));
    child.on("close", (code, signal) => {
      if (code !== 0) return fail(`failed (${signal ?? `exit code ${code}`})`);
      clearTimeout(timer);
      resolve(Buffer.concat(pieces).toString());
    });
  });
}

function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It is over.
  }
}
