import { AppError } from "../../../../common/errors.ts";
import { SSH_COMMAND_MAX_BYTES } from "../../../../common/limits.ts";

/** Any text, quoted for a POSIX shell. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/**
 * Runs the script with no input, and beside it a watcher of the channel's input: when that ends (cancelled, timed out,
 * connection lost) everything in the process group is told to end, then killed; this shell itself ends after the script.
 * Signals over SSH are no way: servers refuse them for root.
 */
const WATCHED = [
  "exec 3<&0 </dev/null",
  "cd 2>/dev/null",
  "ended=",
  "trap 'ended=1' TERM",
  `(trap '' TERM; cat <&3 >/dev/null; kill -s TERM 0; sleep 1; kill -s KILL 0) >/dev/null 2>&1 &`,
  "watcher=$!",
  `/bin/sh -c "$1" 3<&-`,
  "code=$?",
  '[ -z "$ended" ] || kill -s KILL 0',
  "kill -s KILL $watcher",
  "exit $code",
].join("\n");

export function watchedScript(script: string): string {
  const command = `exec /bin/sh -c ${quoted(WATCHED)} sh ${quoted(script)}`;
  if (Buffer.byteLength(command) <= SSH_COMMAND_MAX_BYTES) return command;
  throw new AppError("too_large", `Over SSH a command has at most ${SSH_COMMAND_MAX_BYTES} bytes.`);
}

const VARIABLE = /^[A-Za-z_][A-Za-z0-9_]*$/;

/** A command line, in a folder and with variables. */
export function scriptOf(
  line: string,
  options: { readonly folder?: string; readonly environment?: Readonly<Record<string, string>> } = {},
): string {
  const exports = Object.entries(options.environment ?? {}).map(([name, value]) => {
    if (!VARIABLE.test(name))
      throw new AppError("invalid", `${JSON.stringify(name)} is no name of an environment variable.`);
    return `export ${name}=${quoted(value)}`;
  });
  const enter = options.folder === undefined ? [] : [`cd -- ${quoted(options.folder)} || exit 127`];
  return [...exports, ...enter, line].join("\n");
}
