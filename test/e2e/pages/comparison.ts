import { expect } from "vitest";

/**
 * Compares the output of an example with what its page shows. A page shows JSON without the members that are the same
 * everywhere, and `…` in place of what differs from run to run: a part of a line, a value of JSON, or a line of its own
 * for any number of lines.
 */
export function expectShown(actual: string, shown: string, message: string): void {
  const json = jsonOf(shown);
  if (json !== undefined) expect.soft(jsonOf(actual) ?? actual, message).toEqual(asPattern(json));
  else if (!patternOf(shown).test(actual)) expect.soft(actual.trimEnd(), message).toBe(shown);
}

function jsonOf(text: string): unknown {
  if (!/^\s*[[{]/.test(text)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function asPattern(value: unknown): unknown {
  if (value === "…") return expect.anything();
  if (typeof value === "string" && value.includes("…")) return expect.stringMatching(patternOf(value));
  if (Array.isArray(value)) return value.map(asPattern);
  if (typeof value !== "object" || value === null) return value;
  return expect.objectContaining(
    Object.fromEntries(Object.entries(value).map(([name, one]) => [name, asPattern(one)])),
  );
}

function patternOf(shown: string): RegExp {
  const lines = shown.split("\n").map((line) => {
    if (line === "…") return "(?:.*\n)*?";
    return `${line.split("…").map(escaped).join(".*")} *\n`;
  });
  return new RegExp(`^${lines.join("").replace(/\n$/, "\n?")}$`);
}

function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}
