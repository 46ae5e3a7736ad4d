import {
  COMMON_EXIT_CODES,
  COMMON_FLAGS,
  flagsOf,
  type CommandDeclaration,
  type FlagDeclaration,
} from "../declared/declaration.ts";
import { argumentText, described, flagSummary, flagText, type Described } from "./described.ts";

/** The page that lists every command. */
export function referencePage(commands: readonly CommandDeclaration[]): string {
  return [
    "# Commands of `odp`",
    "",
    "Generated from the declarations of the commands by `npm run gen`. [The command line](command-line.md) tells how to install it and to sign in.",
    "",
    "## Every command",
    "",
    ...flagTable(COMMON_FLAGS),
    ...codeTable(COMMON_EXIT_CODES),
    ...described(commands).flatMap(sectionOf),
  ].join("\n");
}

function sectionOf({ words, usage, declaration }: Described): readonly string[] {
  const { summary, details, arguments: declared = [], exitCodes, examples = [] } = declaration;
  const argumentRows = declared.map((one) => `| \`${argumentText(one)}\` | ${escaped(one.summary)} |`);
  return [
    `## \`odp ${words}\``,
    "",
    escapedTags(`${sentence(summary)}${details === undefined ? "" : ` ${details}`}`),
    "",
    "```sh",
    ...(examples.length > 0 ? examples : [usage]),
    "```",
    "",
    ...(argumentRows.length === 0 ? [] : ["| Argument | |", "| --- | --- |", ...argumentRows, ""]),
    ...flagTable(flagsOf(declaration)),
    ...(exitCodes === undefined ? [] : codeTable(exitCodes)),
  ];
}

function flagTable(flags: readonly FlagDeclaration[]): readonly string[] {
  if (flags.length === 0) return [];
  const rows = flags.map((flag) => `| \`${flagText(flag)}\` | ${escaped(flagSummary(flag))} |`);
  return ["| Option | |", "| --- | --- |", ...rows, ""];
}

function codeTable(codes: Readonly<Record<number, string>>): readonly string[] {
  const rows = Object.entries(codes).map(([code, text]) => `| ${code} | ${escaped(text)} |`);
  return ["| Exit code | |", "| --- | --- |", ...rows, ""];
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

function escaped(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("<", "&lt;");
}

/** Names of values, such as <user>, are no tags of HTML; those in code stay as they are. */
function escapedTags(text: string): string {
  return text.replaceAll(/`[^`]*`|</g, (part) => (part === "<" ? "&lt;" : part));
}
