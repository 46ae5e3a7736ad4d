import {
  COMMON_EXIT_CODES,
  COMMON_FLAGS,
  flagsOf,
  type CommandDeclaration,
  type FlagDeclaration,
} from "../declared/declaration.ts";
import { argumentText, described, flagSummary, flagText } from "./described.ts";

/** Variables that the command line reads. */
const VARIABLES: Readonly<Record<string, string>> = {
  ODP_URL: "address of the controller",
  ODP_USER: "user, as tenant.user",
  ODP_PASSWORD: "password of the user",
  ODP_TOKEN: "API token, in place of user and password",
  ODP_CONTEXT: "name of the context",
  ODP_CONFIG_DIR: "folder of the file of contexts; default: ~/.config/odp",
  PAGER: "program that shows long answers on a terminal; default: less -FRX; empty: none",
  VISUAL: "editor of odp fs edit; default: $EDITOR, or vi",
  TZ: "time zone of the times in tables",
  NO_COLOR: "no colours, if it is not empty",
};

/** The manual page, in the language of man(7). */
export function manualPage(commands: readonly CommandDeclaration[], version: string): string {
  const sections = described(commands).flatMap(({ usage, declaration }) => {
    const { summary, details, arguments: declared = [], exitCodes = {} } = declaration;
    return [
      `.SS ${quoted(usage)}`,
      text(`${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`),
      ...(details === undefined ? [] : [text(details)]),
      ...declared.flatMap((one) => item(argumentText(one), one.summary)),
      ...flagItems(flagsOf(declaration)),
      ...codeItems(exitCodes),
    ];
  });
  return [
    `.TH ODP 1 "" ${quoted(`odp ${version}`)} ${quoted("Commands")}`,
    ".SH NAME",
    "odp \\- command line of odp, an operations data platform",
    ".SH SYNOPSIS",
    ".B odp",
    text("[options] <command> ..."),
    ".SH OPTIONS OF EVERY COMMAND",
    ...flagItems(COMMON_FLAGS),
    ".SH COMMANDS",
    ...sections,
    ".SH EXIT STATUS",
    ...codeItems(COMMON_EXIT_CODES),
    ".SH ENVIRONMENT",
    ...Object.entries(VARIABLES).flatMap(([name, meaning]) => item(name, meaning)),
    "",
  ].join("\n");
}

function flagItems(flags: readonly FlagDeclaration[]): readonly string[] {
  return flags.flatMap((flag) => item(flagText(flag), flagSummary(flag)));
}

function codeItems(codes: Readonly<Record<number, string>>): readonly string[] {
  return Object.entries(codes).flatMap(([code, meaning]) => item(`exit code ${code}`, meaning));
}

function item(name: string, meaning: string): readonly string[] {
  return [".TP", `.B ${text(name)}`, text(meaning)];
}

/** A line of text: its first character is no sign of the language. */
function text(line: string): string {
  const escaped = line.replaceAll("\\", "\\e").replaceAll("-", "\\-");
  return /^[.']/.test(escaped) ? `\\&${escaped}` : escaped;
}

function quoted(line: string): string {
  return `"${text(line).replaceAll('"', "\\(dq")}"`;
}
