import { AppError } from "../../../../common/errors.ts";
import { SSH_COMMAND_MAX_BYTES } from "../../../../common/limits.ts";

/** Quotes any text for a POSIX shell. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/**
 * Reads the variables of the script first, because every user of the host can read arguments in the process list. Then
 * it runs the script without input, with a watcher of the channel's input beside it. When that input ends (cancel,
 * timeout, connection lost), the watcher terminates and then kills every process of the group; this shell itself ends
 * after the script. SSH signals are not an option: servers refuse them for root. Its own variables have names that
 * parameters do not use.
 */
const WATCHED = [
  "exec 3<&0 </dev/null",
  "cd 2>/dev/null",
  "odp_given=",
  `while IFS= read -r odp_line <&3 && [ "$odp_line" != . ]; do odp_given="$odp_given\${odp_line#,}`,
  `"; done`,
  '[ "$odp_line" = . ] || exit 127',
  'eval "$odp_given"',
  "odp_ended=",
  "trap 'odp_ended=1' TERM",
  `(trap '' TERM; cat <&3 >/dev/null; kill -s TERM 0; sleep 1; kill -s KILL 0) >/dev/null 2>&1 &`,
  "odp_watcher=$!",
  `/bin/sh -c "$1" 3<&-`,
  "odp_code=$?",
  '[ -z "$odp_ended" ] || kill -s KILL 0',
  "kill -s KILL $odp_watcher",
  "exit $odp_code",
].join("\n");

export function watchedScript(script: string): string {
  const command = `exec /bin/sh -c ${quoted(WATCHED)} sh ${quoted(script)}`;
  if (Buffer.byteLength(command) <= SSH_COMMAND_MAX_BYTES) return command;
  throw new AppError("too_large", `Over SSH a command has at most ${SSH_COMMAND_MAX_BYTES} bytes.`);
}

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** Builds the script for a command line, run in a folder. */
export function scriptOf(line: string, folder?: string): string {
  return folder === undefined ? line : `cd -- ${quoted(folder)} || exit 127\n${line}`;
}

/** Input for the watcher of a script before the script begins: the script's variables, then a line that ends them. */
export function environmentText(environment: Readonly<Record<string, string>>): string {
  const exports = Object.entries(environment).map(([name, value]) => {
    if (!VARIABLE.test(name))
      throw new AppError("invalid", `${JSON.stringify(name)} is no name of an environment variable.`);
    return `export ${name}=${quoted(value)}`;
  });
  const lines = exports.flatMap((one) => one.split("\n")).map((line) => `,${line}\n`);
  const text = `${lines.join("")}.\n`;
  if (Buffer.byteLength(text) <= SSH_COMMAND_MAX_BYTES) return text;
  throw new AppError("too_large", `Over SSH the variables of a command have at most ${SSH_COMMAND_MAX_BYTES} bytes.`);
}
