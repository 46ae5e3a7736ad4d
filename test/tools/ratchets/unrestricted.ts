import ts from "typescript";
import type { SourceText } from "./measure.ts";

/** Call sites of `objects.unrestricted` in the sources of the controller, outside the area that offers it. */
export interface CallSites {
  /** Number of calls, by file. */
  readonly counts: Readonly<Record<string, number>>;
  /** Places where `unrestricted` is used in another way than by a call. */
  readonly misuses: readonly string[];
}

/** Number of calls that a file may make, and why it must read or write past the rules for rows and columns. */
export interface ListedFile {
  readonly sites: number;
  readonly reason: string;
}

export type ListedFiles = Readonly<Record<string, ListedFile>>;

const NAME = "unrestricted";
const LIST = "test/tools/ratchets/unrestricted.json";
const REASON_MIN_WORDS = 4;

export function callSites(sources: Iterable<SourceText>): CallSites {
  const counts: Record<string, number> = {};
  const misuses: string[] = [];
  for (const { path, text } of sources) {
    if (!isMeasured(path) || !text.includes(NAME)) continue;
    const source = ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
    const visit = (node: ts.Node): void => {
      if (isCallee(node)) counts[path] = (counts[path] ?? 0) + 1;
      else if (isNamed(node)) misuses.push(`${path}:${source.getLineAndCharacterOfPosition(node.getStart()).line + 1}`);
      ts.forEachChild(node, visit);
    };
    visit(source);
  }
  return { counts, misuses };
}

function isMeasured(path: string): boolean {
  return path.startsWith("controller/") && !path.endsWith(".test.ts") && !path.startsWith("controller/areas/objects/");
}

/** True for the name in `x.unrestricted.read(…)`. */
function isCallee(node: ts.Node): boolean {
  if (!ts.isIdentifier(node) || node.text !== NAME) return false;
  const access = node.parent;
  if (!ts.isPropertyAccessExpression(access) || access.name !== node) return false;
  const method = access.parent;
  if (!ts.isPropertyAccessExpression(method) || method.expression !== access) return false;
  return ts.isCallExpression(method.parent) && method.parent.expression === method;
}

/** True for the name as a word of the program. A type such as `Pick<Objects, "unrestricted">` calls nothing. */
function isNamed(node: ts.Node): boolean {
  if (ts.isIdentifier(node)) return node.text === NAME;
  return ts.isStringLiteralLike(node) && node.text === NAME && !ts.isLiteralTypeNode(node.parent);
}

export function unrestrictedComplaints({ counts, misuses }: CallSites, listed: ListedFiles): readonly string[] {
  const more = Object.entries(counts).filter(([path, sites]) => sites > (listed[path]?.sites ?? 0));
  const fewer = Object.entries(listed).filter(([path, { sites }]) => (counts[path] ?? 0) < sites);
  const unexplained = Object.entries(listed).filter(
    ([path, { reason }]) => path in counts && reason.split(/\s+/).filter(Boolean).length < REASON_MIN_WORDS,
  );
  return [
    ...misuses.map(
      (place) =>
        `${NAME}: ${place} does not call it. Write objects.${NAME}.<call>(…), or pass the objects on: each call site is counted.`,
    ),
    ...more.map(
      ([path, sites]) =>
        `${NAME}: ${path} has ${sites} calls (${listed[path]?.sites ?? 0} in the list). They skip the rules for rows and columns: answer users by VisibleObjects (controller/areas/objects/visible). A call that must not follow these rules is added to ${LIST}, with its reason.`,
    ),
    ...unexplained.map(
      ([path]) => `${NAME}: ${path} has no reason in ${LIST}: say in a sentence why it needs the calls`,
    ),
    ...(fewer.length > 0
      ? [
          `${NAME}: the list says more than there is (${fewer.map(([path]) => path).join(", ")}): npm run ratchets lowers it`,
        ]
      : []),
  ];
}

/** The list as far as it is still needed. It never grows. */
export function loweredFiles({ counts }: CallSites, listed: ListedFiles): ListedFiles {
  return Object.fromEntries(
    Object.entries(listed)
      .filter(([path]) => path in counts)
      .map(([path, { sites, reason }]) => [path, { sites: Math.min(sites, counts[path] ?? 0), reason }]),
  );
}
