import { CLI_COMPLETION_MS } from "../../../common/limits.ts";
import type { Call } from "../declared/call.ts";
import type { CommandDeclaration, Completed } from "../declared/declaration.ts";
import type { Shell } from "../declared/shell.ts";
import { UsageError } from "../declared/usage.ts";
import { printable } from "../formats/printable.ts";
import { completionOf } from "./completion.ts";
import { SHELL_SCRIPTS } from "./scripts.ts";

const SHELLS = Object.keys(SHELL_SCRIPTS);

/** Declarations of the commands that the words behind `odp` may name. */
type CommandsFor = (words: readonly string[]) => Promise<readonly CommandDeclaration[]>;

/** `odp completion`, and the command that its scripts call. */
export function completionCommands(commandsFor: CommandsFor): readonly CommandDeclaration[] {
  return [
    {
      name: "completion",
      summary: "write the script by which a shell completes odp",
      arguments: [{ name: "shell", summary: SHELLS.join(", ") }],
      examples: ["source <(odp completion bash)", "odp completion fish > ~/.config/fish/completions/odp.fish"],
      async run(call) {
        const script = SHELL_SCRIPTS[call.text("shell")];
        if (script === undefined) throw new UsageError(`Shells are ${SHELLS.join(", ")}, not ${call.text("shell")}.`);
        await call.shell.write(script);
      },
    },
    {
      name: "__complete",
      summary: "answer what may come next on a command line, for the scripts of odp completion",
      isHidden: true,
      arguments: [{ name: "words", summary: "words behind odp", isOptional: true, isRepeated: true }],
      passesThrough: true,
      run: (call) => complete(call, commandsFor),
    },
  ];
}

async function complete(call: Call, commandsFor: CommandsFor): Promise<void> {
  const { shell } = call;
  const words = call.list("words");
  const commands = await commandsFor(words.slice(0, -1));
  const { words: found, kind } = completionOf(
    commands.filter(({ isHidden }) => isHidden !== true),
    words,
  );
  const start = words.at(-1) ?? "";
  const named = kind === undefined ? [] : await namesOf(kind, shell);
  const lines = [
    ...found.map(({ word, summary }) => `${word}\t${summary}`),
    ...named.filter((word) => word.startsWith(start) || word.startsWith(":")),
  ];
  await shell.write(lines.map((line) => `${line}\n`).join(""));
}

/** Names of the controller, or a word with a colon by which the shell completes itself. */
async function namesOf(kind: Completed, shell: Shell): Promise<readonly string[]> {
  if (kind === "files" || kind === "folders") return [`:${kind}`];
  try {
    if (kind === "contexts") return Object.keys((await shell.contexts.load()).contexts);
    const { NAMES } = await import("./names.ts");
    return (await NAMES[kind](await shell.client(CLI_COMPLETION_MS))).map(printable);
  } catch {
    // A completion never disturbs the line that is typed.
    return [];
  }
}
