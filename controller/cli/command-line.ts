import { CommanderError } from "commander";
import { COMMANDS } from "./commands/all.ts";
import { programOf } from "./declared/program.ts";
import { expandedWords } from "./declared/words.ts";
import { WRONG_USAGE } from "./declared/usage.ts";
import { failureCode, failureText } from "./failure.ts";
import { paintFor } from "./formats/paint.ts";
import { ProcessShell, type ProcessParts } from "./shell.ts";

/** Runs one command line, the words behind `odp`. Returns the exit code. */
export async function runCommandLine(words: readonly string[], parts: ProcessParts): Promise<number> {
  const { version, stdout, stderr, environment } = parts;
  let exitCode = 0;
  const given = expandedWords(words, COMMANDS);
  const program = programOf({
    version,
    commands: COMMANDS,
    words: given,
    shell: (common) => new ProcessShell(parts, common),
    setExitCode: (code) => (exitCode = code),
    told: { writeOut: (text) => void stdout.write(text), writeErr: (text) => void stderr.write(text) },
  });
  try {
    await program.parseAsync(given, { from: "user" });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : WRONG_USAGE;
    stderr.write(`${paintFor(stderr, environment).error(failureText(error))}\n`);
    return failureCode(error);
  }
}
