import { isRow } from "./columns.ts";
import { printableJson } from "./printable.ts";

/** Texts that YAML reads as themselves: nothing that it would take for a number, a time, a truth value or a sign. */
const PLAIN = /^[A-Za-z/][\w./@-]*$/;
const RESERVED = /^(?:true|false|null|yes|no|on|off|y|n)$/i;

/** A value of JSON as YAML 1.2, in blocks. */
export function yamlOf(value: unknown): string {
  return `${lines(value).join("\n")}\n`;
}

function lines(value: unknown): readonly string[] {
  if (Array.isArray(value) && value.length > 0) return value.flatMap((one) => item(lines(one)));
  if (!isRow(value)) return [scalar(value)];
  const members = Object.entries(value).filter(([, member]) => member !== undefined);
  return members.length === 0 ? ["{}"] : members.flatMap(([name, member]) => membersOf(scalar(name), member));
}

function membersOf(name: string, member: unknown): readonly string[] {
  const below = lines(member);
  const isBlock = Array.isArray(member) ? member.length > 0 : isRow(member) && below[0] !== "{}";
  if (!isBlock) return [`${name}: ${below.join("")}`];
  return [`${name}:`, ...below.map((line) => `  ${line}`)];
}

function item([first = "", ...rest]: readonly string[]): readonly string[] {
  return [`- ${first}`, ...rest.map((line) => `  ${line}`)];
}

function scalar(value: unknown): string {
  if (typeof value === "string" && PLAIN.test(value) && !RESERVED.test(value)) return value;
  return printableJson(value ?? null);
}
