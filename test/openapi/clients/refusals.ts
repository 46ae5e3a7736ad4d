import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { AssertionError } from "node:assert";
import listed from "./refused.json" with { type: "json" };

/** Calls that the document allows and the service refuses, because a schema cannot tell why. */
export interface Refusals {
  /** Methods and paths of the document; `*` is any. */
  readonly operations: readonly string[];
  /** Regular expression of the text of the refusal. */
  readonly says: string;
  /** Why no schema can tell it. */
  readonly why: string;
}

export const REFUSALS: readonly Refusals[] = listed;

/** Operations of all entries of `refused.json`. Lower it with the list. */
const LISTED = 69;

const REFUSED = 400;
/** Refusals of one run that its failure shows. */
const SHOWN = 50;

/**
 * The document with the name space of a tenant in the patterns that begin with one. `x-name-space` is the part of the
 * pattern in place of which it stands.
 */
export function inNameSpace(value: unknown, name: string): unknown {
  if (Array.isArray(value)) return value.map((one) => inNameSpace(one, name));
  if (typeof value !== "object" || value === null) return value;
  const members = Object.fromEntries(Object.entries(value).map(([key, member]) => [key, inNameSpace(member, name)]));
  const { "x-name-space": part, pattern } = members;
  if (typeof part !== "string" || typeof pattern !== "string") return members;
  return { ...members, pattern: pattern.replace(part, () => name) };
}

/** Compares the refusals in a report of schemathesis with the list. */
export async function checkRefusals(
  report: Readable,
  refusals: readonly Refusals[],
  allowed: number = LISTED,
): Promise<void> {
  const count = refusals.reduce((sum, { operations }) => sum + operations.length, 0);
  if (count !== allowed)
    throw new AssertionError({ message: `refused.json lists ${count} operations, not ${allowed}.` });
  const unlisted: string[] = [];
  for await (const line of createInterface({ input: report }))
    for (const refusal of refusalsIn(JSON.parse(line) as Event)) {
      if (refusals.some((known) => isListed(known, refusal)) || unlisted.length >= SHOWN) continue;
      unlisted.push(`${refusal.operation} ${refusal.uri} ${refusal.body}\n  ${refusal.text}`);
    }
  if (unlisted.length > 0)
    throw new AssertionError({ message: `Calls that the document allows are refused:\n${unlisted.join("\n")}` });
}

interface Refusal {
  readonly operation: string;
  readonly uri: string;
  readonly body: string;
  readonly text: string;
}

function isListed({ operations, says }: Refusals, { operation, text }: Refusal): boolean {
  return (operations.includes("*") || operations.includes(operation)) && new RegExp(says, "u").test(text);
}

/** An event of the report, as far as it is read here. Bytes are an object with the member `$base64`. */
interface Event {
  readonly ScenarioFinished?: {
    readonly recorder?: { readonly label: string; readonly interactions: Readonly<Record<string, Interaction>> };
  };
}

interface Interaction {
  readonly request: { readonly uri: string; readonly body?: unknown };
  readonly response?: { readonly status_code: number; readonly content?: unknown } | null;
}

function refusalsIn({ ScenarioFinished: scenario }: Event): readonly Refusal[] {
  const { label: operation = "", interactions = {} } = scenario?.recorder ?? {};
  return Object.values(interactions).flatMap(({ request, response }) => {
    if (response?.status_code !== REFUSED) return [];
    const { detail = "" } = JSON.parse(textOf(response.content)) as { readonly detail?: string };
    return [{ operation, uri: request.uri, body: textOf(request.body).slice(0, 500), text: detail }];
  });
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  const { $base64: bytes = "" } = (content ?? {}) as { readonly $base64?: string };
  return Buffer.from(bytes, "base64").toString();
}
