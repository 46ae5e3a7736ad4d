import { Argument, Command, CommanderError, Option } from "commander";
import { Call, type Words } from "./call.ts";
import {
  COMMON_EXIT_CODES,
  COMMON_FLAGS,
  flagsOf,
  type CommandDeclaration,
  type FlagDeclaration,
} from "./declaration.ts";
import type { Shell } from "./shell.ts";

/** Values of the options of every command. */
export type CommonWords = Readonly<Partial<Record<(typeof COMMON_FLAGS)[number]["name"], string | true>>>;

export interface ProgramOptions {
  readonly version: string;
  readonly commands: readonly CommandDeclaration[];
  /** Makes what a command uses, once its common options are known. */
  readonly shell: (common: CommonWords) => Promise<Shell>;
  readonly setExitCode: (code: number) => void;
  /** Takes help, and errors of the command line. */
  readonly told: { readonly writeOut: (text: string) => void; readonly writeErr: (text: string) => void };
}

const ABOUT = "Operations data platform, from the command line";
const COMMON: readonly FlagDeclaration[] = COMMON_FLAGS;

/** Parses the words behind `odp`, and runs their command. Returns false if the command line is wrong, which is told. */
export async function runProgram(words: readonly string[], options: ProgramOptions): Promise<boolean> {
  try {
    await programOf(options).parseAsync(words, { from: "user" });
    return true;
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0;
  }
}

/** The program of the declared commands. Options of every command may stand before and behind its name. */
function programOf(options: ProgramOptions): Command {
  const program = new Command("odp")
    .exitOverride()
    .configureOutput(options.told)
    .description(ABOUT)
    .version(options.version)
    .enablePositionalOptions();
  for (const flag of COMMON) program.addOption(optionOf(flag));
  program.showSuggestionAfterError().addHelpText("after", `\n${exitCodesText(COMMON_EXIT_CODES)}`);
  for (const declaration of options.commands)
    program.addCommand(commandOf(declaration, options), { hidden: declaration.isHidden === true });
  return program;
}

function commandOf(declaration: CommandDeclaration, options: ProgramOptions): Command {
  const { name, summary, details, exitCodes, examples, passesThrough, run } = declaration;
  const command = new Command(name)
    .exitOverride()
    .configureOutput(options.told)
    .summary(summary)
    .description(details === undefined ? `${summary}.` : `${summary}.\n\n${details}`);
  for (const argument of declaration.arguments ?? []) command.addArgument(argumentOf(argument));
  for (const flag of flagsOf(declaration)) command.addOption(optionOf(flag));
  const own = new Set(flagsOf(declaration).map((flag) => flag.name));
  if (run !== undefined)
    for (const flag of COMMON) if (!own.has(flag.name)) command.addOption(optionOf(flag).hideHelp());
  if (exitCodes !== undefined) command.addHelpText("after", `\n${exitCodesText(exitCodes)}`);
  if (examples !== undefined)
    command.addHelpText("after", `\nExamples:\n${examples.map((line) => `  ${line}`).join("\n")}`);
  if (passesThrough === true) command.passThroughOptions();
  for (const below of declaration.commands ?? []) command.addCommand(commandOf(below, options));
  if (run === undefined) return command;
  if ((declaration.commands ?? []).length > 0) command.enablePositionalOptions();
  return command.action(async () => {
    const words = wordsOf(command, declaration);
    const call = new Call(words, await options.shell(commonWords(command, own)));
    const isWatched = declaration.isReading === true && call.optional("watch") !== undefined;
    const code = await (isWatched ? (await import("./watched.ts")).watched(call, run) : run(call));
    if (code !== undefined) options.setExitCode(code);
  });
}

function argumentOf({
  name,
  summary,
  isOptional,
  isRepeated,
}: NonNullable<CommandDeclaration["arguments"]>[number]): Argument {
  const text = isRepeated === true ? `${name}...` : name;
  return new Argument(isOptional === true ? `[${text}]` : `<${text}>`, summary);
}

function optionOf(flag: FlagDeclaration): Option {
  const { name, short, value, summary, isRepeated, takesMany, default: otherwise, choices } = flag;
  const names = short === undefined ? `--${name}` : `-${short}, --${name}`;
  const option = new Option(
    value === undefined ? names : `${names} <${value}${takesMany === true ? "..." : ""}>`,
    summary,
  );
  if (choices !== undefined) option.choices(choices);
  if (otherwise !== undefined) option.default(otherwise);
  if (isRepeated === true) option.argParser((given: string, before: readonly string[] = []) => [...before, given]);
  return option;
}

/** Values of the arguments and options that the command declares. */
function wordsOf(command: Command, declaration: CommandDeclaration): Words {
  const declared = declaration.arguments ?? [];
  const given = command.processedArgs as readonly (string | readonly string[] | undefined)[];
  const values: [string, Words[string]][] = declared.map(({ name }, at) => [name, given[at]]);
  return Object.fromEntries([
    ...values,
    ...flagsOf(declaration).map(({ name }): [string, Words[string]] => [name, valueOf(command, name)]),
  ]);
}

/** Options of every command, as given at the command or at one above it: the nearest one wins. */
function commonWords(command: Command, own: ReadonlySet<string>): CommonWords {
  const words: Record<string, Words[string]> = {};
  for (let at: Command | null = command; at !== null; at = at.parent)
    for (const { name } of COMMON) if (!(at === command && own.has(name))) words[name] ??= valueOf(at, name);
  return words as CommonWords;
}

function valueOf(command: Command, name: string): Words[string] {
  const option = command.options.find(({ long }) => long === `--${name}`);
  if (option === undefined) return undefined;
  const value = command.getOptionValue(option.attributeName()) as Words[string] | boolean;
  // The value of `--no-x` is false once it is given.
  if (option.negate) return value === false ? true : undefined;
  return value === false ? undefined : value;
}

function exitCodesText(codes: Readonly<Record<number, string>>): string {
  return ["Exit codes:", ...Object.entries(codes).map(([code, text]) => `  ${code.padEnd(4)} ${text}`)].join("\n");
}
