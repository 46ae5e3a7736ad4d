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
export function placeOfCommand(words: readonly string[], commands: readonly CommandDeclaration[]): number {
  let isValue = false;
  for (const [at, word] of words.entries()) {
    if (!isValue && !word.startsWith("-")) return commands.some(({ name }) => name === word) ? at : -1;
    isValue = !isValue && takesValue(word, undefined);
  }
  return -1;
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
