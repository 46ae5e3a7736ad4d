import ts from "typescript";

export const FUNCTION_MAX_LINES = 70;
export const CLASS_MAX_LINES = 250;
export const FILE_MAX_LINES = 400;
/** About two screens. */
export const README_MAX_WORDS = 1_000;

/**
 * Number of lines of parts that are longer than their bound, by file and name; number of words of READMEs that are;
 * number of comments hard to read; number of loops that wait for calls begun together.
 */
export interface Measured {
  readonly functions: Readonly<Record<string, number>>;
  readonly classes: Readonly<Record<string, number>>;
  readonly files: Readonly<Record<string, number>>;
  readonly readmes: Readonly<Record<string, number>>;
  readonly comments: Readonly<Record<string, number>>;
  readonly loops: Readonly<Record<string, number>>;
}

export interface SourceText {
  readonly path: string;
  readonly text: string;
}

/** Comment lines that a reader has to read twice, by the name under which they are counted. */
const HARD_COMMENTS: Readonly<Record<string, RegExp>> = {
  "begins with Of, What, Whether or Else": /^\s*(?:\/\/|\/?\*+)\s*(?:Of|What|Whether|Else)\b/,
  "says whoever, whatever, whichever, nobody or somebody":
    /^\s*(?:\/\/|\/?\*).*\b(?:whoever|whatever|whichever|nobody|somebody)\b/i,
};

/**
 * Loops over calls that have begun, which expect one rejection after another. A call that rejects before its turn has no
 * handler yet, and Node ends the run of the tests for it.
 */
const LATE_EXPECTATION =
  /\bfor \(const (\w+) of [^;]+?\)\s*\{?\s*await expect\(\1(?:,[^;]*?)?\)\s*\.(?:rejects|resolves)\b/g;

/** Tests are one function for each `describe`, so only their files and classes are measured. */
export function measure(sources: Iterable<SourceText>): Measured {
  const functions: Record<string, number> = {};
  const classes: Record<string, number> = {};
  const files: Record<string, number> = {};
  const readmes: Record<string, number> = {};
  const loops: Record<string, number> = {};
  const comments: Record<string, number> = Object.fromEntries(Object.keys(HARD_COMMENTS).map((name) => [name, 0]));
  for (const { path, text } of sources) {
    if (path.endsWith(".md")) {
      const words = text.split(/\s+/).filter(Boolean).length;
      if (words > README_MAX_WORDS) readmes[path] = words;
      continue;
    }
    const lines = text.split("\n");
    const count = lines.length - (lines.at(-1) === "" ? 1 : 0);
    if (count > FILE_MAX_LINES) files[path] = count;
    const late = text.match(LATE_EXPECTATION)?.length ?? 0;
    if (late > 0) loops[path] = late;
    for (const [name, pattern] of Object.entries(HARD_COMMENTS))
      comments[name] = (comments[name] ?? 0) + lines.filter((line) => pattern.test(line)).length;
    const isTest = path.endsWith(".test.ts");
    // A shorter file holds no part that is too long. Parsing takes most of the time.
    if (count <= (isTest ? CLASS_MAX_LINES : FUNCTION_MAX_LINES)) continue;
    for (const { kind, name, length } of partsOf(path, text)) {
      const key = `${path} ${name}`;
      if (kind === "class" && length > CLASS_MAX_LINES) classes[key] = Math.max(length, classes[key] ?? 0);
      if (kind === "function" && !isTest && length > FUNCTION_MAX_LINES)
        functions[key] = Math.max(length, functions[key] ?? 0);
    }
  }
  return { functions, classes, files, readmes, comments, loops };
}

interface Part {
  readonly kind: "function" | "class";
  readonly name: string;
  /** Lines from its first word to its end, without its doc comment. */
  readonly length: number;
}

function partsOf(path: string, text: string): readonly Part[] {
  const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
  const parts: Part[] = [];
  const visit = (node: ts.Node): void => {
    const kind = ts.isClassLike(node) ? "class" : ts.isFunctionLike(node) && "body" in node ? "function" : undefined;
    if (kind !== undefined) {
      const [from, to] = [node.getStart(source), node.end].map((at) => source.getLineAndCharacterOfPosition(at).line);
      parts.push({ kind, name: nameOf(node), length: (to ?? 0) - (from ?? 0) + 1 });
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return parts;
}

/** The node's own name, or that of the nearest enclosing node that has one. */
function nameOf(node: ts.Node): string {
  for (let at: ts.Node | undefined = node; at !== undefined; at = at.parent) {
    const name = (at as ts.NamedDeclaration).name;
    if (name === undefined) continue;
    const owner = ts.isClassLike(at.parent) ? `${at.parent.name?.getText() ?? "(class)"}.` : "";
    return `${owner}${name.getText()}`;
  }
  return "(file)";
}
