import { AppError } from "../../../../common/errors.ts";
import { GROK_DEPTH_MAX, PATTERN_MAX_CHARACTERS } from "../../../../common/limits.ts";
import { numberOf } from "../../../../common/numbers.ts";
import { compilePattern, type Pattern } from "../../../../common/regex/pattern.ts";
import { beginningOf } from "../../../../common/text/cut.ts";
import { setMember } from "../../../../common/members.ts";
import { GROK_PATTERNS } from "./known-patterns.ts";

/** A compiled grok expression with the names of its captures. */
export interface Grok {
  readonly captures: readonly string[];
  /** True if a capture has the type `timestamp`. */
  readonly readsTimes: boolean;
  /**
   * Captured texts by name; `undefined` if the line does not match. `%{IP}` is captured as `IP`, `%{IP:client}` as
   * `client`. `readTime` converts captures of type `timestamp`; without it they stay texts.
   */
  match(line: string, readTime?: ReadTime): Readonly<Record<string, string | number>> | undefined;
  /** Upper bound for the steps of `match`, as in `Pattern.steps`. */
  steps(line: string): number;
}

/** Converts a text to the stored form of its time; returns a text that is not a time unchanged. */
type ReadTime = (text: string) => string;

const TYPES = ["int", "float", "string", "timestamp"] as const;
type CaptureType = (typeof TYPES)[number];

interface Capture {
  readonly name: string;
  readonly type: CaptureType;
  /** True if the captured text is in quotes, which are removed. */
  readonly isQuoted: boolean;
  /** True if an earlier capture has the same name. */
  readonly isRepeated: boolean;
}

/**
 * `%{PATTERN}`, `%{PATTERN:name}` or `%{PATTERN:name:type}`. It also matches malformed references, which are refused.
 */
const REFERENCE = /%\{([^{}]*)(\}?)/g;
const REFERENCE_BODY = /^([A-Za-z0-9_]+)(?::([^:]+)(?::([^:]*))?)?$/;
/** Patterns that match a text in quotes. */
const QUOTED = new Set(["QS", "QUOTEDSTRING"]);

/**
 * Expands references and compiles the expression through the regular-expression gate. `AppError("invalid")` for an
 * unknown pattern, a circle of patterns, or an unusable expression.
 */
export function compileGrok(expression: string, own: Readonly<Record<string, string>> = {}): Grok {
  const captures: Capture[] = [];
  const pattern = compilePattern(expand(expression, { own, captures, depth: 0, named: true }));
  if (pattern.groupCount > captures.length) return grokByName(pattern, captures);
  return grokByNumber(compilePattern(expand(expression, { own, captures: [], depth: 0, named: false })), captures);
}

/** The patterns in `all` that the expressions use, directly or through other patterns, by name. */
export function patternsReached(
  expressions: readonly string[],
  all: Readonly<Record<string, string>>,
): Readonly<Record<string, string>> {
  const reached = new Map<string, string>();
  const open = [...expressions];
  for (let expression = open.pop(); expression !== undefined; expression = open.pop()) {
    for (const name of patternNames(expression)) {
      const text = own(all, name);
      if (text === undefined || reached.has(name)) continue;
      reached.set(name, text);
      open.push(text);
    }
  }
  return Object.fromEntries(reached);
}

function patternNames(expression: string): readonly string[] {
  return Array.from(expression.matchAll(REFERENCE), ([, body = ""]) => REFERENCE_BODY.exec(body)?.[1] ?? "");
}

interface Expansion {
  readonly own: Readonly<Record<string, string>>;
  readonly captures: Capture[];
  readonly depth: number;
  /** True if groups get names. It costs several times as much to read groups by name as by number. */
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
  const expanded = expression.replace(REFERENCE, (whole, body: string, end: string) =>
    expandReference(readReference(whole, body, end), expansion),
  );
  refuseTooLong(expanded);
  return expanded;
}

/** Called at each level of expansion, because patterns that contain others many times would grow exponentially. */
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
  readonly type: CaptureType;
}

/** Reads a reference. `AppError("invalid")` if it is malformed: as plain text it would match nothing. */
function readReference(whole: string, body: string, end: string): Reference {
  const told = JSON.stringify(beginningOf(whole, REFERENCE_SHOWN_CHARACTERS));
  if (end === "") throw new AppError("invalid", `The grok reference ${told} has no closing brace.`);
  const [, pattern, name, type = "string"] = REFERENCE_BODY.exec(body) ?? [];
  if (pattern === undefined)
    throw new AppError(
      "invalid",
      `${told} is no grok reference: write %{PATTERN}, %{PATTERN:name} or %{PATTERN:name:type}.`,
    );
  const known = TYPES.find((one) => one === type);
  if (known === undefined)
    throw new AppError("invalid", `The grok reference ${told} has an unknown type: there are ${TYPES.join(", ")}.`);
  return { pattern, name, type: known };
}

const REFERENCE_SHOWN_CHARACTERS = 100;

function expandReference({ pattern, name, type }: Reference, expansion: Expansion): string {
  const users = own(expansion.own, pattern);
  const body = users ?? own(GROK_PATTERNS, pattern);
  if (body === undefined) throw new AppError("invalid", `There is no grok pattern named ${pattern}.`);
  // Inside a standard pattern, a name always means the standard pattern, even if users have a pattern of that name.
  const inner = { ...expansion, depth: expansion.depth + 1, ...(users === undefined && { own: {} }) };
  // Without a name, only references in the author's own expression capture a text, not those inside patterns.
  const keep = name ?? (expansion.depth === 0 ? pattern : undefined);
  if (keep === undefined) return `(?:${expand(body, inner)})`;
  const isQuoted = users === undefined && QUOTED.has(pattern);
  const isRepeated = expansion.captures.some((earlier) => earlier.name === keep);
  const index = expansion.captures.push({ name: keep, type, isQuoted, isRepeated }) - 1;
  return `(${expansion.named ? `?<g${index}>` : ""}${expand(body, inner)})`;
}

function own(table: Readonly<Record<string, string>>, name: string): string | undefined {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}

/**
 * For an expression without further groups. The captures are in the order of their opening parentheses, which is the
 * order of the group numbers.
 */
function grokByNumber(pattern: Pattern, captures: readonly Capture[]): Grok {
  return {
    captures: [...new Set(captures.map((capture) => capture.name))],
    readsTimes: readsTimes(captures),
    steps: (line) => pattern.steps(line),
    match(line, readTime) {
      const found = pattern.captures(line);
      if (!found) return undefined;
      const fields: Record<string, string | number> = {};
      for (let at = 0; at < captures.length; at += 1) {
        const [text, capture] = [found[at + 1], captures[at]];
        if (text && capture) keep(fields, capture, valueOf(text, capture, readTime));
      }
      return fields;
    },
  };
}

/** For an expression with further groups, which its author wrote. Those with names are captured as well. */
function grokByName(pattern: Pattern, captures: readonly Capture[]): Grok {
  const written = pattern.groupNames.filter((name) => !/^g\d+$/.test(name));
  return {
    captures: [...new Set([...captures.map((capture) => capture.name), ...written])],
    readsTimes: readsTimes(captures),
    steps: (line) => pattern.steps(line),
    match(line, readTime) {
      const found = pattern.exec(line);
      if (!found) return undefined;
      const fields: Record<string, string | number> = {};
      captures.forEach((capture, index) => {
        const text = found.groups[`g${index}`];
        if (text) keep(fields, capture, valueOf(text, capture, readTime));
      });
      for (const name of written) {
        const text = found.groups[name];
        if (text && !Object.hasOwn(fields, name)) setMember(fields, name, text);
      }
      return fields;
    },
  };
}

function readsTimes(captures: readonly Capture[]): boolean {
  return captures.some(({ type }) => type === "timestamp");
}

/** The value of a captured text; empty for an empty text in quotes. */
function valueOf(text: string, { type, isQuoted }: Capture, readTime: ReadTime | undefined): string | number {
  const bare = isQuoted ? text.slice(1, -1) : text;
  return type === "string" || bare === "" ? bare : convert(bare, type, readTime);
}

/** Sets a field, unless the value is empty or an earlier capture has set it. */
function keep(fields: Record<string, string | number>, { name, isRepeated }: Capture, value: string | number): void {
  if (value !== "" && !(isRepeated && Object.hasOwn(fields, name))) setMember(fields, name, value);
}

/**
 * Converts a captured text to its type. A text that is no number stays a text, and so does a number that no double
 * represents: the column then takes it exactly or refuses it.
 */
function convert(text: string, type: Exclude<CaptureType, "string">, readTime: ReadTime | undefined): string | number {
  if (type === "timestamp") return readTime === undefined ? text : readTime(text);
  if (text.trim() === "" || !Number.isFinite(Number(text))) return text;
  const number = numberOf(text.trim());
  if (type === "float") return number;
  return typeof number === "number" ? Math.trunc(number) : number.replace(/\..*/, "");
}
