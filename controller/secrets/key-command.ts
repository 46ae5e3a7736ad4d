import { AppError } from "../../common/errors.ts";
import { SECRET_KEY_COMMAND_DEADLINE_MS, SECRET_KEY_TEXT_MAX_BYTES } from "../../common/limits.ts";
import { parseSecretKeys } from "../../common/secret-key.ts";
import type { Clock } from "../../common/time.ts";
import type { Processes } from "../processes/index.ts";
import { secretBox, type KeyRing } from "./key-ring.ts";

/** The dependencies of a key command. */
export interface KeyCommandWorld {
  readonly processes: Processes;
  readonly clock: Clock;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

export interface KeyCommandOptions extends KeyCommandWorld {
  /** A line for the shell, such as `vault kv get -field=key secret/odp`. */
  readonly command: string;
  /** Absent: `SECRET_KEY_COMMAND_DEADLINE_MS`. */
  readonly deadlineMs?: number;
}

/**
 * Reads keys from the output of a command, in the format of a key file. `AppError("unavailable")` if the command fails,
 * writes more than `SECRET_KEY_TEXT_MAX_BYTES`, or does not end by its deadline; its whole process group is then
 * killed. `AppError("invalid")` if the output is no key file. No error contains the output of the command.
 */
export async function secretKeyOfCommand(options: KeyCommandOptions): Promise<KeyRing> {
  const read = async () => parseSecretKeys(await outputOf(options), "What the command of secret_key_command writes");
  return secretBox(await read(), read);
}

function outputOf({ command, deadlineMs, processes, clock, environment }: KeyCommandOptions): Promise<string> {
  const waitMs = deadlineMs ?? SECRET_KEY_COMMAND_DEADLINE_MS;
  return new Promise((resolve, reject) => {
    const pieces: Uint8Array[] = [];
    let bytes = 0;
    const fail = (why: string): void => {
      cancel();
      child.kill("SIGKILL");
      reject(new AppError("unavailable", `The command of secret_key_command (ODP_SECRET_KEY_COMMAND) ${why}.`));
    };
    const take = (piece: Uint8Array): void => {
      bytes += piece.length;
      if (bytes > SECRET_KEY_TEXT_MAX_BYTES) fail(`wrote more than ${SECRET_KEY_TEXT_MAX_BYTES} bytes`);
      else pieces.push(piece);
    };
    const line = { file: "/bin/sh", args: ["-c", command], env: environment };
    // A process group of its own, so that `kill` also ends the processes that the command started.
    const child = processes.start({ ...line, stderr: "inherited", isGroup: true }, take);
    const cancel = clock.after(waitMs, () => fail(`did not end within ${waitMs} ms`));
    child.drained.then(
      ({ code, signal }) => {
        if (code !== 0) return fail(`failed (${signal ?? `exit code ${code}`})`);
        cancel();
        return resolve(Buffer.concat(pieces).toString());
      },
      () => fail("could not be started"),
    );
  });
}
