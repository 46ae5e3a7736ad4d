import { AppError } from "../../../../common/errors.ts";
import { SSH_COMMAND_MAX_BYTES } from "../../../../common/limits.ts";

/** Quotes any text for a POSIX shell. */
export function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

/**
 * Reads the variables of the script and its input first, because every user of the host can read arguments in the
 * process list. Then it runs the script, with a watcher of the channel's input beside it. When that input ends (cancel,
 * timeout, connection lost), the watcher terminates and then kills every process of the group; this shell itself ends
 * after the script. SSH signals are not an option: servers refuse them for root. Its own variables have names that
 * parameters do not use.
 */
const WATCHED = [
  "exec 3<&0 </dev/null",
  "cd 2>/dev/null",
  "odp_given= odp_input=",
  `while IFS= read -r odp_line <&3 && [ "$odp_line" != . ]; do case $odp_line in`,
  `"<"*) odp_input="$odp_input\${odp_line#?}";;`,
  `*) odp_given="$odp_given\${odp_line#,}`,
  `";; esac; done`,
  '[ "$odp_line" = . ] || exit 127',
  'eval "$odp_given"',
  "odp_ended=",
  "trap 'odp_ended=1' TERM",
  `(trap '' TERM; cat <&3 >/dev/null; kill -s TERM 0; sleep 1; kill -s KILL 0) >/dev/null 2>&1 &`,
  "odp_watcher=$!",
  `if [ -n "$odp_input" ]; then printf %b "$odp_input" | /bin/sh -c "$1" 3<&-`,
  `else /bin/sh -c "$1" 3<&-; fi`,
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

/** Gifts of the caller to a script. */
export interface ScriptGifts {
  readonly environment?: Readonly<Record<string, string>>;
  /** Bytes of its standard input; absent: it is empty. */
  readonly input?: Uint8Array;
}

/**
 * Text for the watcher of a script before the script begins: the variables of the script, its input, and a line that
 * ends both.
 */
export function giftsText({ environment = {}, input = new Uint8Array() }: ScriptGifts): string {
  const exports = Object.entries(environment).map(([name, value]) => {
    if (!VARIABLE.test(name))
      throw new AppError("invalid", `${JSON.stringify(name)} is no name of an environment variable.`);
    return `export ${name}=${quoted(value)}`;
  });
  const lines = exports.flatMap((one) => one.split("\n")).map((line) => `,${line}\n`);
  const variables = lines.join("");
  if (Buffer.byteLength(variables) > SSH_COMMAND_MAX_BYTES)
    throw new AppError("too_large", `Over SSH the variables of a command have at most ${SSH_COMMAND_MAX_BYTES} bytes.`);
  if (input.length > SSH_COMMAND_MAX_BYTES)
    throw new AppError("too_large", `Over SSH the input of a command has at most ${SSH_COMMAND_MAX_BYTES} bytes.`);
  return `${variables}${inputLines(input)}.\n`;
}

/** Bytes of one line, of which each takes up to five characters. */
const INPUT_LINE_BYTES = 800;

/** Lines for `printf %b` of a POSIX shell: printable signs but the backslash as they are, other bytes in octal. */
function inputLines(input: Uint8Array): string {
  const lines: string[] = [];
  for (let at = 0; at < input.length; at += INPUT_LINE_BYTES) {
    const part = Array.from(input.subarray(at, at + INPUT_LINE_BYTES), (byte) =>
      PLAIN.test(String.fromCharCode(byte)) ? String.fromCharCode(byte) : `\\0${byte.toString(8).padStart(3, "0")}`,
    );
    lines.push(`<${part.join("")}\n`);
  }
  return lines.join("");
}

const PLAIN = /^[ -[\]-~]$/;
