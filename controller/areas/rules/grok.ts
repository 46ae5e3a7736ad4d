import { AppError } from "../../../common/errors.ts";
import { GROK_DEPTH_MAX, PATTERN_MAX_CHARACTERS } from "../../../common/limits.ts";
import { numberOf } from "../../../common/numbers.ts";
import { compilePattern, type Pattern } from "../../../common/regex/pattern.ts";
import { GROK_PATTERNS } from "./grok-patterns.ts";

/** A compiled grok expression: what it captures, by name. */
export interface Grok {
  readonly captures: readonly string[];
  /**
   * Captured texts by name, undefined when the line does not match. `%{IP}` is kept under `IP`, `%{IP:client}` under
   * `client`.
   */
  match(line: string): Readonly<Record<string, string | number>> | undefined;
  /** What `match` costs at most, as `Pattern.steps` has it. */
  steps(line: string): number;
}

interface Capture {
  readonly name: string;
  readonly conversion: "int" | "float" | undefined;
}

/** `%{PATTERN}`, `%{PATTERN:name}`, `%{PATTERN:name:type}` with type `int` or `float`. */
const REFERENCE = /%\{([A-Za-z0-9_]+)(?::([^:{}]+))?(?::(int|float|string))?\}/g;

/**
 * Expands references and compiles through the regular-expression gate. `AppError("invalid")` for an unknown pattern, a
 * circle, or an expression that is not usable.
 */
export function compileGrok(expression: string, own: Readonly<Record<string, string>> = {}): Grok {
  const captures: Capture[] = [];
  const pattern = compilePattern(expand(expression, { own, captures, depth: 0, named: true }));
  if (pattern.groupCount > captures.length) return grokByName(pattern, captures);
  return grokByNumber(compilePattern(expand(expression, { own, captures: [], depth: 0, named: false })), captures);
}

/** The patterns among `all` that the expressions name, and those that these name, by name. */
export function patternsReached(
  expressions: readonly string[],
  all: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const reached = new Map<string, string>();
  const open = [...expressions];
  for (let expression = open.pop(); expression !== undefined; expression = open.pop()) {
    for (const [, name = ""] of expression.matchAll(REFERENCE)) {
      const text = own(all, name);
      if (text === undefined || reached.has(name)) continue;
      reached.set(name, text);
      open.push(text);
    }
  }
  return Object.fromEntries(reached);
}

/** Whether an expression names a pattern that is not of the standard set. */
export function namesOwnPattern(expression: string): boolean {
  return [...expression.matchAll(REFERENCE)].some(([, name = ""]) => !Object.hasOwn(GROK_PATTERNS, name));
}

interface Expansion {
  readonly own: Readonly<Record<string, string>>;
  readonly captures: Capture[];
  readonly depth: number;
  /** Reading groups by name costs several times as much. */
  readonly named: boolean;
}

function expand(expression: string, expansion: Expansion): string {
  if (expansion.depth > GROK_DEPTH_MAX) {
    throw new AppError(
      "invalid",
      `Grok patterns refer to each other more than ${GROK_DEPTH_MAX} deep, or in a circle.`,
    );
  }
  refuseTooLong(expression);
  const expanded = expression.replace(
    REFERENCE,
    (_whole, pattern: string, name: string | undefined, type: string | undefined) =>
      expandReference({ pattern, name, type }, expansion),
  );
  refuseTooLong(expanded);
  return expanded;
}

/** At each level, so that patterns that name others many times do not grow from one to the next. */
function refuseTooLong(expression: string): void {
  if (expression.length <= PATTERN_MAX_CHARACTERS) return;
  throw new AppError(
    "invalid",
    `The grok expression has more than ${PATTERN_MAX_CHARACTERS} characters, with the patterns it names.`,
  );
}

interface Reference {
  readonly pattern: string;
  readonly name: string | undefined;
  readonly type: string | undefined;
}

function expandReference({ pattern, name, type }: Reference, expansion: Expansion): string {
  const body = own(expansion.own, pattern) ?? own(GROK_PATTERNS, pattern);
  if (body === undefined) throw new AppError("invalid", `There is no grok pattern named ${pattern}.`);
  // Only what the author wrote is kept under its pattern's name, not what those patterns are made of.
  const keep = name ?? (expansion.depth === 0 ? pattern : undefined);
  if (keep === undefined) return `(?:${expand(body, { ...expansion, depth: expansion.depth + 1 })})`;
  const conversion = type === "int" || type === "float" ? type : undefined;
  const index = expansion.captures.push({ name: keep, conversion }) - 1;
  return `(${expansion.named ? `?<g${index}>` : ""}${expand(body, { ...expansion, depth: expansion.depth + 1 })})`;
}

function own(table: Readonly<Record<string, string>>, name: string): string | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}

/** No group but those of the captures, which stand in the order of their opening parentheses: that of their numbers. */
function grokByNumber(pattern: Pattern, captures: readonly Capture[]): Grok {
  return {
    captures: [...new Set(captures.map((capture) => capture.name))],
    steps: (line) => pattern.steps(line),
    match(line) {
      const found = pattern.captures(line);
      if (!found) return undefined;
      const fields: Record<string, string | number> = {};
      for (let at = 0; at < captures.length; at += 1) {
        const text = found[at + 1];
        const capture = captures[at];
        if (text && capture) fields[capture.name] ??= convert(text, capture.conversion);
      }
      return fields;
    },
  };
}

/** The author's own expression captures as well. */
function grokByName(pattern: Pattern, captures: readonly Capture[]): Grok {
  const written = pattern.groupNames.filter((name) => !/^g\d+$/.test(name));
  return {
    captures: [...new Set([...captures.map((capture) => capture.name), ...written])],
    steps: (line) => pattern.steps(line),
    match(line) {
      const found = pattern.exec(line);
      if (!found) return undefined;
      const fields: Record<string, string | number> = {};
      captures.forEach((capture, index) => {
        const text = found.groups[`g${index}`];
        if (text !== undefined && text !== "") fields[capture.name] ??= convert(text, capture.conversion);
      });
      for (const name of written) {
        const text = found.groups[name];
        if (text) fields[name] ??= text;
      }
      return fields;
    },
  };
}

/** What is no number, or one that no double may hold, stays text: the column takes it exactly or refuses it. */
function convert(text: string, conversion: Capture["conversion"]): string | number {
  if (conversion === undefined || text.trim() === "" || !Number.isFinite(Number(text))) return text;
  const number = numberOf(text.trim());
  if (conversion === "float") return number;
  return typeof number === "number" ? Math.trunc(number) : number.replace(/\..*/, "");
}
