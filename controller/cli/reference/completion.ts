import {
  COMMON_FLAGS,
  flagsOf,
  type CommandDeclaration,
  type Completed,
  type FlagDeclaration,
} from "../declared/declaration.ts";

/** Words that may come next on a command line, or the kind of names that may. */
export interface Completion {
  readonly words: readonly Candidate[];
  readonly kind?: Completed | undefined;
}

export interface Candidate {
  readonly word: string;
  readonly summary: string;
}

const COMMON: readonly FlagDeclaration[] = COMMON_FLAGS;

/** Completes the last of the words behind `odp`, which may be empty. */
export function completionOf(commands: readonly CommandDeclaration[], words: readonly string[]): Completion {
  const last = words.at(-1) ?? "";
  const place = placeOf(commands, words.slice(0, -1));
  const { flag, command, given } = place;
  if (flag?.value !== undefined) return valuesOf(flag, last);
  const own = command === undefined ? [] : flagsOf(command);
  const flags = [...own, ...COMMON.filter(({ name }) => !own.some((flag) => flag.name === name))];
  const [, name, start] = /^--([\w-]+)=(.*)$/.exec(last) ?? [];
  const assigned = flags.find((one) => one.name === name && one.value !== undefined);
  if (assigned !== undefined) {
    const { words: found, kind } = valuesOf(assigned, start ?? "");
    return {
      words: found.map((one) => ({ ...one, word: `--${assigned.name}=${one.word}` })),
      kind: found.length > 0 ? undefined : kind,
    };
  }
  if (last.startsWith("-"))
    return {
      words: matching(
        flags.map(({ name: word, summary }) => ({ word: `--${word}`, summary })),
        last,
      ),
    };
  const below = matching(
    place.below.map(({ name: word, summary }) => ({ word, summary })),
    last,
  );
  const declared = command?.arguments ?? [];
  const argument = declared[given] ?? (declared.at(-1)?.isRepeated === true ? declared.at(-1) : undefined);
  return { words: given === 0 ? below : [], kind: argument?.completes };
}

interface Place {
  readonly command: CommandDeclaration | undefined;
  readonly below: readonly CommandDeclaration[];
  /** Number of arguments that are there. */
  readonly given: number;
  /** The option whose value comes next. */
  readonly flag: FlagDeclaration | undefined;
}

/** The command that the words name, and what of it is given. */
function placeOf(commands: readonly CommandDeclaration[], words: readonly string[]): Place {
  let place: Place = { command: undefined, below: commands, given: 0, flag: undefined };
  for (const word of words) {
    const { command, below, given, flag } = place;
    if (flag !== undefined) place = { ...place, flag: undefined };
    else if (word.startsWith("-")) place = { ...place, flag: takingValue(word, command) };
    else {
      const next = given === 0 ? below.find(({ name }) => name === word) : undefined;
      place =
        next === undefined
          ? { ...place, given: given + 1 }
          : { command: next, below: next.commands ?? [], given: 0, flag: undefined };
    }
  }
  return place;
}

function takingValue(word: string, command: CommandDeclaration | undefined): FlagDeclaration | undefined {
  const flag = [...(command?.flags ?? []), ...COMMON].find(
    ({ name, short }) => word === `--${name}` || (short !== undefined && word === `-${short}`),
  );
  return flag?.value === undefined ? undefined : flag;
}

function valuesOf({ choices, completes, summary }: FlagDeclaration, start: string): Completion {
  return {
    words: matching(
      (choices ?? []).map((word) => ({ word, summary })),
      start,
    ),
    kind: completes,
  };
}

function matching(candidates: readonly Candidate[], start: string): readonly Candidate[] {
  return candidates.filter(({ word }) => word.startsWith(start));
}
