import { CLI_WATCH_SECONDS } from "../../../common/limits.ts";
import { FORMATS } from "../formats/names.ts";
import type { Call } from "./call.ts";

/** An argument of a command that has no name on the command line. */
export interface ArgumentDeclaration {
  readonly name: string;
  readonly summary: string;
  readonly isOptional?: boolean;
  /** True for the last one: it takes all words that follow. */
  readonly isRepeated?: boolean;
  readonly completes?: Completed;
}

/** An option of a command. */
export interface FlagDeclaration {
  /** Without the two dashes. */
  readonly name: string;
  readonly short?: string;
  /** Name of its value; absent: the option has none. */
  readonly value?: string;
  readonly summary: string;
  /** True: it may be given several times. */
  readonly isRepeated?: boolean;
  /** True: it takes all words up to the next option. */
  readonly takesMany?: boolean;
  readonly default?: string;
  readonly choices?: readonly string[];
  readonly completes?: Completed;
}

/** Words that a shell may complete. Absent: none. */
export type Completed = "files" | "folders" | "contexts" | NamedThing;

/** Things whose names the controller tells. */
export type NamedThing =
  | "hosts"
  | "policies"
  | "jobs"
  | "runs"
  | "depots"
  | "users"
  | "groups"
  | "tenants"
  | "classes"
  | "rules"
  | "scripts";

/**
 * A command, or a group of commands. The program, its help, the completion of shells, the reference and the manual page
 * are made from these declarations.
 */
export interface CommandDeclaration {
  readonly name: string;
  /** Begins with a verb, without a full stop. */
  readonly summary: string;
  /** Further sentences. */
  readonly details?: string;
  readonly arguments?: readonly ArgumentDeclaration[];
  readonly flags?: readonly FlagDeclaration[];
  /** Exit codes of its own, besides those of every command. */
  readonly exitCodes?: Readonly<Record<number, string>>;
  readonly examples?: readonly string[];
  /** True: options behind the first argument belong to another program. */
  readonly passesThrough?: boolean;
  /** True: it changes nothing, so `--watch` can repeat it. */
  readonly isReading?: boolean;
  /** True: not in help, reference or completion. */
  readonly isHidden?: boolean;
  readonly commands?: readonly CommandDeclaration[];
  /** Returns the exit code; nothing: 0. Absent for a group. */
  readonly run?: (call: Call) => Promise<number | void>;
}

const WATCH: FlagDeclaration = {
  name: "watch",
  value: "seconds",
  summary: `show the answer again every ${CLI_WATCH_SECONDS} seconds until Ctrl-C, or as often as --watch=<seconds> says; in a pipe, only answers that differ`,
};

/** Options of a command besides those of every command. */
export function flagsOf({ flags = [], isReading }: CommandDeclaration): readonly FlagDeclaration[] {
  return isReading === true ? [...flags, WATCH] : flags;
}

/** Options of every command. */
export const COMMON_FLAGS = [
  { name: "context", value: "name", summary: "controller and user of an earlier odp login", completes: "contexts" },
  { name: "url", value: "url", summary: "address of the controller, with the password or token of the environment" },
  { name: "user", value: "tenant.user", summary: "user, with the password of the environment" },
  { name: "output", short: "o", value: "format", summary: "format of the answer", choices: FORMATS },
  { name: "json", summary: "the same as -o json; --json=<fields> also chooses the fields" },
  { name: "fields", value: "names", summary: "members to show, in this order, separated by commas" },
  {
    name: "zone",
    value: "zone",
    summary: "time zone of the times in tables, such as Europe/Oslo or +01:00; default: that of this machine",
  },
  { name: "no-pager", summary: "write long answers at once; without it, a terminal shows them with $PAGER or less" },
  { name: "utc", summary: "the same as --zone UTC" },
] as const satisfies readonly FlagDeclaration[];

/** Exit codes that every command may have. */
export const COMMON_EXIT_CODES: Readonly<Record<number, string>> = {
  0: "done",
  1: "a call failed; the message says why",
  64: "the command line is wrong; nothing was done",
  74: "done, and the answer could not be written",
  130: "ended by a signal",
};
