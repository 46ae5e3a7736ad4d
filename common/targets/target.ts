import { AppError } from "../errors.ts";
import {
  TAG_DEPTH_MAX,
  TARGET_GROUP_MAX_BYTES,
  TARGET_NAME_MAX_CHARACTERS,
  TARGET_TEXT_MAX_CHARACTERS,
} from "../limits.ts";
import { hostCondition } from "./condition.ts";
import { shownEntry, targetFault } from "./faults.ts";

/** One entry of a list of hosts: the name of a host, or an expression that hosts match. */
export type Target =
  | { readonly kind: "name"; readonly host: string }
  /** Hosts with this tag, or with one below it. */
  | { readonly kind: "tag"; readonly path: string }
  /** Hosts whose `hostgroups` contain this group. */
  | { readonly kind: "group"; readonly group: string }
  /** Hosts whose names match; `*` stands for any text. */
  | { readonly kind: "pattern"; readonly pattern: string }
  /** Hosts that fulfil a condition of MQL, which is in its printed form. */
  | { readonly kind: "where"; readonly condition: string };

const PREFIXES = ["tag:", "group:", "where:"] as const;
/** Characters of host names, and `*`. */
const PATTERN = /[^\p{L}\p{N}._*-]/u;
const CONTROL = /[\p{Cc}\p{Cs}]/u;

/** True for an expression. No host has a name with `:` or `*`, so no name of a host is taken for an expression. */
export function isExpression(entry: string): boolean {
  return prefixOf(entry) !== undefined || entry.includes("*");
}

/**
 * Parses an entry. A text with another prefix is the name of a host. Errors name the entry and the position of the
 * fault in it, from 1: `AppError("syntax")` for a condition, `invalid` for a field that a condition may not use and for
 * other expressions, `too_large` for a long entry.
 */
export function parseTarget(entry: string): Target {
  if (entry.length > TARGET_TEXT_MAX_CHARACTERS)
    throw new AppError(
      "too_large",
      `The target ${shownEntry(entry)} has more than ${TARGET_TEXT_MAX_CHARACTERS} characters.`,
      {
        details: { limit: "TARGET_TEXT_MAX_CHARACTERS" },
      },
    );
  const prefix = prefixOf(entry);
  const rest = entry.slice(prefix?.length ?? 0);
  if (prefix !== undefined && rest.trim() === "")
    throw targetFault(entry, prefix.length, `${prefix} is followed by ${AFTER[prefix]}`);
  if (prefix === "where:") return { kind: "where", condition: hostCondition(entry, prefix.length) };
  const control = CONTROL.exec(entry);
  if (control) throw targetFault(entry, control.index, "control characters are not allowed");
  if (prefix === "tag:") return { kind: "tag", path: tagOf(entry, prefix.length) };
  if (prefix === "group:") return { kind: "group", group: groupOf(entry, prefix.length) };
  return entry.includes("*") ? { kind: "pattern", pattern: patternOf(entry) } : { kind: "name", host: nameOf(entry) };
}

const AFTER = {
  "tag:": "the path of a tag",
  "group:": "a group of hosts",
  "where:": "a condition on the columns of hosts",
} as const;

function prefixOf(entry: string): (typeof PREFIXES)[number] | undefined {
  return PREFIXES.find((prefix) => entry.startsWith(prefix));
}

function nameOf(entry: string): string {
  if (entry.length <= TARGET_NAME_MAX_CHARACTERS) return entry;
  throw new AppError(
    "invalid",
    `The name of a host has at most ${TARGET_NAME_MAX_CHARACTERS} characters, not ${entry.length}: ${shownEntry(entry)}.`,
  );
}

/** Without slashes at its ends. */
function tagOf(entry: string, start: number): string {
  const begin = entry.startsWith("/", start) ? start + 1 : start;
  const path = entry.slice(begin).replace(/\/$/, "");
  let at = begin;
  const parts = path.split("/");
  if (parts.length > TAG_DEPTH_MAX) throw targetFault(entry, start, `a tag lies at most ${TAG_DEPTH_MAX} deep`);
  for (const part of parts) {
    if (part === "" || part === "." || part === ".." || part.trim() !== part)
      throw targetFault(entry, at, `${JSON.stringify(part)} is no part of the path of a tag`);
    if (part.includes("*"))
      throw targetFault(entry, at + part.indexOf("*"), "a tag contains no *: tags below it match by themselves");
    at += part.length + 1;
  }
  return path;
}

function groupOf(entry: string, start: number): string {
  const group = entry.slice(start);
  if (group.trim() !== group) throw targetFault(entry, start, "a group has no blanks at its ends");
  if (group.includes("*")) throw targetFault(entry, entry.indexOf("*"), "a group contains no *");
  if (new TextEncoder().encode(group).length <= TARGET_GROUP_MAX_BYTES) return group;
  throw targetFault(entry, start, `a group has at most ${TARGET_GROUP_MAX_BYTES} bytes`);
}

function patternOf(entry: string): string {
  const wrong = PATTERN.exec(entry);
  if (!wrong) return entry.replace(/\*+/g, "*");
  const { index } = wrong;
  throw targetFault(
    entry,
    index,
    `${JSON.stringify(wrong[0])} is in no name of a host; a pattern has letters, digits, . - _ and *`,
  );
}
