import {
  flagsOf,
  type ArgumentDeclaration,
  type CommandDeclaration,
  type FlagDeclaration,
} from "../declared/declaration.ts";

/** A command that can be run, with the words that call it. */
export interface Described {
  /** `host list` */
  readonly words: string;
  /** `odp host list [--tag <tag>]` */
  readonly usage: string;
  readonly declaration: CommandDeclaration;
}

/** Every command that can be run, in their order, without hidden ones. */
export function described(commands: readonly CommandDeclaration[], above = ""): readonly Described[] {
  return commands.flatMap((declaration) => {
    if (declaration.isHidden === true) return [];
    const words = `${above}${declaration.name}`;
    const own = declaration.run === undefined ? [] : [{ words, usage: usageOf(words, declaration), declaration }];
    return [...own, ...described(declaration.commands ?? [], `${words} `)];
  });
}

function usageOf(words: string, declaration: CommandDeclaration): string {
  const declared = declaration.arguments ?? [];
  const options = flagsOf(declaration).map((flag) => `[${flagText(flag)}]`);
  return ["odp", words, ...options, ...declared.map(argumentText)].join(" ");
}

export function argumentText({ name, isOptional, isRepeated }: ArgumentDeclaration): string {
  const text = isRepeated === true ? `${name}...` : name;
  return isOptional === true ? `[${text}]` : `<${text}>`;
}

/** `-f, --file <path>` */
export function flagText({ name, short, value, takesMany }: FlagDeclaration): string {
  const text = short === undefined ? `--${name}` : `-${short}, --${name}`;
  return value === undefined ? text : `${text} <${value}${takesMany === true ? "..." : ""}>`;
}

/** The summary of an option, with its choices and default. */
export function flagSummary({ summary, choices, default: otherwise, isRepeated }: FlagDeclaration): string {
  return [
    summary,
    ...(choices === undefined ? [] : [`one of ${choices.join(", ")}`]),
    ...(otherwise === undefined ? [] : [`default: ${otherwise}`]),
    ...(isRepeated === true && !summary.includes("repeated") ? ["may be repeated"] : []),
  ].join("; ");
}
