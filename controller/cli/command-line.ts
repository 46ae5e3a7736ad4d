import { commandsFor } from "./commands/all.ts";
import { expandedWords, namedCommands } from "./declared/words.ts";
import { WRONG_USAGE } from "./declared/usage.ts";
import { failureCode, failureText } from "./failure.ts";
import { paintFor } from "./formats/paint.ts";
import type { ProcessParts } from "./shell.ts";

/** Runs one command line, the words behind `odp`. Returns the exit code. */
export async function runCommandLine(words: readonly string[], parts: ProcessParts): Promise<number> {
  const { version, stdout, stderr, environment } = parts;
  if (words.length === 1 && (words[0] === "--version" || words[0] === "-V")) {
    stdout.write(`${version}\n`);
    return 0;
  }
  let exitCode = 0;
  try {
    // Loaded when needed: each part that a command does not use makes its start slower.
    const [known, { runProgram }] = await Promise.all([commandsFor(words), import("./declared/program.ts")]);
    const commands = namedCommands(words, known);
    const isRight = await runProgram(expandedWords(words, commands), {
      ...{ version, commands },
      shell: async (common) => new (await import("./shell.ts")).ProcessShell(parts, common),
      setExitCode: (code) => (exitCode = code),
      told: { writeOut: (text) => void stdout.write(text), writeErr: (text) => void stderr.write(text) },
    });
    return isRight ? exitCode : WRONG_USAGE;
  } catch (error) {
    stderr.write(`${paintFor(stderr, environment).error(failureText(error))}\n`);
    return failureCode(error);
  }
}
