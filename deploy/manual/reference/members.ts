import { escapeHtml } from "../../../common/text/html.ts";
import { nameIn, type Schema } from "./document.ts";

/** One row of a table of members. */
export interface Member {
  /** Members of members have the names of both, with a dot; `[]` stands for each item of a list. */
  readonly name: string;
  readonly type: string;
  readonly isRequired: boolean;
  readonly meaning: string;
}

/** Members of members are shown down to this depth. */
const DEPTH_MAX = 4;

/** All members of an object, or of the objects of a list, with the members of those. */
export function membersOf(schema: Schema, prefix = "", depth = 0): readonly Member[] {
  if (depth > DEPTH_MAX) return [];
  const { properties = {}, required = [], items, additionalProperties, anyOf = [] } = schema;
  const own = Object.entries(properties).flatMap(([name, member]) => [
    {
      name: prefix + name,
      type: typeOf(member),
      isRequired: required.includes(name),
      meaning: meaningOf(member),
    },
    ...membersOf(member, `${prefix}${name}.`, depth + 1),
  ]);
  const inner = prefix.replace(/\.$/, "");
  const ofItems = items === undefined ? [] : membersOf(items, `${inner}[].`, depth + 1);
  const ofValues =
    typeof additionalProperties === "object" ? membersOf(additionalProperties, `${inner}.*.`, depth + 1) : [];
  const ofChoices = anyOf.flatMap((one) => membersOf(one, prefix, depth + 1));
  return distinct([...own, ...ofItems, ...ofValues, ...ofChoices]);
}

/** Two forms of an object may have a member of the same name and meaning. */
function distinct(members: readonly Member[]): readonly Member[] {
  const byKey = new Map(members.map((member) => [`${member.name} ${member.type} ${member.meaning}`, member]));
  return [...byKey.values()];
}

/** The type in words. */
export function typeOf(schema: Schema): string {
  const { type, enum: choices, const: only, items, anyOf, format, additionalProperties, $ref } = schema;
  if ($ref !== undefined) return nameIn($ref);
  if (only !== undefined) return JSON.stringify(only);
  if (choices !== undefined) return choices.map((choice) => JSON.stringify(choice)).join(", ");
  if (anyOf !== undefined) return [...new Set(anyOf.map(typeOf))].join(" or ");
  if (type === "array") return items === undefined ? "list" : `list of ${typeOf(items)}`;
  if (type === "object" && typeof additionalProperties === "object") return `object of ${typeOf(additionalProperties)}`;
  if (format === "binary") return "bytes";
  return type === undefined ? "any" : (WORDS[type] ?? type);
}

const WORDS: Readonly<Record<string, string>> = { string: "text", boolean: "true or false", null: "null" };

/** The description, with the bounds and the default value. */
export function meaningOf(schema: Schema, description = schema.description): string {
  const text = description ?? schema.items?.description ?? schema.anyOf?.find((one) => one.description)?.description;
  const parts = [text, ...boundsOf(schema)].filter((part) => part !== undefined && part !== "");
  return parts.map((part) => sentence(part ?? "", schema.enum)).join(" ");
}

/** The text as a sentence. It begins with a capital letter, unless its first word is one of the values. */
function sentence(text: string, choices: readonly unknown[] = []): string {
  const trimmed = text.trim();
  const isValue = choices.includes(/^[\w-]+/.exec(trimmed)?.[0]);
  const begun = isValue ? trimmed : trimmed.charAt(0).toUpperCase() + trimmed.slice(1);
  return /[.!?:]$/.test(begun) ? begun : `${begun}.`;
}

function boundsOf(schema: Schema): readonly string[] {
  const { minimum, maximum, minLength, maxLength, minItems, maxItems, default: standard } = schema;
  return [
    range("", {
      from: minimum === Number.MIN_SAFE_INTEGER ? undefined : minimum,
      to: maximum === Number.MAX_SAFE_INTEGER ? undefined : maximum,
    }),
    range("characters", { from: minLength, to: maxLength }),
    range("items", { from: minItems, to: maxItems }),
    standard === undefined ? "" : `Default: ${JSON.stringify(standard)}`,
  ];
}

function range(
  unit: string,
  { from, to }: { readonly from: number | undefined; readonly to: number | undefined },
): string {
  const tail = unit === "" ? "" : ` ${unit}`;
  if (from !== undefined && to !== undefined) return `${number(from)} to ${number(to)}${tail}`;
  if (from !== undefined) return `At least ${number(from)}${tail}`;
  return to === undefined ? "" : `At most ${number(to)}${tail}`;
}

function number(value: number): string {
  return value.toLocaleString("en-US");
}

/** Says of members of a request which are needed, and of members of an answer which may be absent. */
export type Direction = "request" | "answer";

/** A table of members; empty if there are none. */
export function memberTable(members: readonly Member[], direction: Direction, head = "Member"): string {
  if (members.length === 0) return "";
  const rows = members.map(({ name, type, isRequired, meaning }) => {
    const note = direction === "request" ? (isRequired ? "required" : "") : isRequired ? "" : "optional";
    const needed = note === "" ? "" : ` <em class="needed">${note}</em>`;
    return `<tr><td><code>${escapeHtml(name)}</code>${needed}</td><td>${escapeHtml(type)}</td><td>${marked(meaning)}</td></tr>`;
  });
  return `<div class="table" tabindex="0"><table>
<thead><tr><th>${head}</th><th>Type</th><th>Meaning</th></tr></thead>
<tbody>${rows.join("\n")}</tbody>
</table></div>`;
}

/** Descriptions mark code as Markdown does. */
export function marked(text: string): string {
  return escapeHtml(text).replace(/`([^`]+)`/g, "<code>$1</code>");
}
