import { CLI_WATCH_SECONDS } from "../../../common/limits.ts";
import { COMMON_FLAGS, type CommandDeclaration, type FlagDeclaration } from "./declaration.ts";

const COMMON: readonly FlagDeclaration[] = COMMON_FLAGS;

/**
 * The words of a command line with `--json=<fields>` as the two options that it stands for, and a `--watch` without a
 * value with its default. Words that belong to another program stay as they are.
 */
export function expandedWords(words: readonly string[], commands: readonly CommandDeclaration[]): readonly string[] {
  const expanded: string[] = [];
  let below = commands;
  let command: CommandDeclaration | undefined;
  let isValue = false;
  for (const [at, word] of words.entries()) {
    const isOperand = !isValue && !word.startsWith("-");
    if (word === "--" || (isOperand && command?.passesThrough === true)) return [...expanded, ...words.slice(at)];
    expanded.push(...(isValue ? [word] : expandedWord(word, command)));
    isValue = !isValue && takesValue(word, command);
    const next = isOperand ? below.find(({ name }) => name === word) : undefined;
    if (next === undefined) continue;
    command = next;
    below = next.commands ?? [];
  }
  return expanded;
}

/** Place of the word that names a command of the program; -1: there is none. Values of options before it are none. */
export function placeOfCommand(words: readonly string[], names: readonly string[]): number {
  let isValue = false;
  for (const [at, word] of words.entries()) {
    if (!isValue && !word.startsWith("-")) return names.includes(word) ? at : -1;
    isValue = !isValue && takesValue(word, undefined);
  }
  return -1;
}

/**
 * The commands that the words name, each with only the command below it that they name. All if they name none, or ask for
 * help before it; without those below them if no word can name one. Parsing and help of a command need no others, and
 * each one makes a start slower.
 */
export function namedCommands(
  words: readonly string[],
  commands: readonly CommandDeclaration[],
): readonly CommandDeclaration[] {
  const place = namedPlace(
    words,
    commands.map(({ name }) => name),
  );
  const named = commands.filter(({ name }) => name === words[place]);
  if (named.length === 0) return isOperandIn(words) ? commands : commands.map((one) => ({ ...one, commands: [] }));
  return named.map((one) => {
    const { commands: below, run, flags = [] } = one;
    const hasWords = run !== undefined || flags.length > 0;
    return below === undefined || hasWords ? one : { ...one, commands: namedCommands(words.slice(place + 1), below) };
  });
}

/** As `placeOfCommand`; -1 also if the words ask for help before the command. */
export function namedPlace(words: readonly string[], names: readonly string[]): number {
  const place = placeOfCommand(words, names);
  return words.slice(0, Math.max(0, place)).some((word) => word === "--help" || word === "-h") ? -1 : place;
}

/** True if one of the words is neither an option nor its value. */
function isOperandIn(words: readonly string[]): boolean {
  let isValue = false;
  for (const word of words) {
    if (!isValue && !word.startsWith("-")) return true;
    isValue = !isValue && takesValue(word, undefined);
  }
  return false;
}

function expandedWord(word: string, command: CommandDeclaration | undefined): readonly string[] {
  const [, fields] = /^--json=(.*)$/s.exec(word) ?? [];
  if (fields !== undefined) return ["--json", `--fields=${fields}`];
  return word === "--watch" && command?.isReading === true ? [`--watch=${CLI_WATCH_SECONDS}`] : [word];
}

function takesValue(word: string, command: CommandDeclaration | undefined): boolean {
  const flag = [...(command?.flags ?? []), ...COMMON].find(
    ({ name, short }) => word === `--${name}` || (short !== undefined && word === `-${short}`),
  );
  return flag?.value !== undefined && flag.takesMany !== true;
}
