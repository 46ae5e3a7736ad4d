import ts from "typescript";

/** One small change of a source file: the text from `start` to `end` (offsets in UTF-16 units) becomes `text`. */
export interface Mutation {
  readonly start: number;
  readonly end: number;
  readonly text: string;
  /** One-based. */
  readonly line: number;
  /** The changed text before and after, on one line each. */
  readonly before: string;
  readonly after: string;
  /** Smallest expression or statement that contains the change. */
  readonly around: Around;
}

/** Range of an expression or a statement, in offsets in UTF-16 units. */
export interface Around {
  readonly start: number;
  readonly end: number;
  readonly isStatement: boolean;
  /** The code runs once, when its file is loaded. */
  readonly isAtLoad: boolean;
}

type Change = readonly [node: ts.Node, text: string];

const SWAPPED: Partial<Record<ts.SyntaxKind, string>> = {
  [ts.SyntaxKind.EqualsEqualsEqualsToken]: "!==",
  [ts.SyntaxKind.ExclamationEqualsEqualsToken]: "===",
  [ts.SyntaxKind.LessThanToken]: "<=",
  [ts.SyntaxKind.LessThanEqualsToken]: "<",
  [ts.SyntaxKind.GreaterThanToken]: ">=",
  [ts.SyntaxKind.GreaterThanEqualsToken]: ">",
  [ts.SyntaxKind.MinusToken]: "+",
};

const ONE_SIDE = new Set([
  ts.SyntaxKind.AmpersandAmpersandToken,
  ts.SyntaxKind.BarBarToken,
  ts.SyntaxKind.QuestionQuestionToken,
]);

/** Calls that a test need not notice when they are missing. */
const UNWATCHED = /^(?:await |void )?(?:super\(|(?:this\.)?[#\w.]*\blog\.|console\.)/;

/** All changes that the rules below make of a source, in the order of the text. */
export function mutationsOf(source: string): readonly Mutation[] {
  const file = ts.createSourceFile("source.ts", source, ts.ScriptTarget.Latest, true);
  const found: Mutation[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isTypeNode(node) || ts.isImportDeclaration(node)) return;
    for (const [place, text] of changesOf(node, file)) found.push(mutation({ place, text, file }));
    ts.forEachChild(node, visit);
  };
  visit(file);
  return found.sort((left, right) => left.start - right.start || left.end - right.end);
}

export function mutated(source: string, { start, end, text }: Mutation): string {
  return source.slice(0, start) + text + source.slice(end);
}

function changesOf(node: ts.Node, file: ts.SourceFile): readonly Change[] {
  if (ts.isBinaryExpression(node)) return binary(node, file);
  if (ts.isPrefixUnaryExpression(node) && node.operator === ts.SyntaxKind.ExclamationToken) {
    return [[node, node.operand.getText(file)]];
  }
  if (ts.isIfStatement(node))
    return [
      [node.expression, "false"],
      [node.expression, "true"],
    ];
  if (ts.isConditionalExpression(node))
    return [
      [node.condition, "false"],
      [node.condition, "true"],
    ];
  if (ts.isExpressionStatement(node)) return withoutCall(node, file);
  if (node.kind === ts.SyntaxKind.TrueKeyword) return [[node, "false"]];
  if (node.kind === ts.SyntaxKind.FalseKeyword) return [[node, "true"]];
  return [];
}

function binary(node: ts.BinaryExpression, file: ts.SourceFile): readonly Change[] {
  const { kind } = node.operatorToken;
  if (ONE_SIDE.has(kind)) {
    const [left, right] = [node.left, node.right].map((side): Change => [node, `(${side.getText(file)})`]);
    // `...(a && { a })` and `...({ a })` differ by an undefined member only, which reads like an absent one.
    return isSpread(node.parent) && ts.isObjectLiteralExpression(node.right) ? [left!] : [left!, right!];
  }
  const other = SWAPPED[kind];
  return other === undefined ? [] : [[node.operatorToken, other]];
}

function isSpread(node: ts.Node): boolean {
  return ts.isSpreadAssignment(node) || (ts.isParenthesizedExpression(node) && isSpread(node.parent));
}

function withoutCall(node: ts.ExpressionStatement, file: ts.SourceFile): readonly Change[] {
  const text = node.getText(file);
  const expression =
    ts.isAwaitExpression(node.expression) || ts.isVoidExpression(node.expression)
      ? node.expression.expression
      : node.expression;
  return ts.isCallExpression(expression) && !UNWATCHED.test(text) ? [[node, ";"]] : [];
}

interface Place {
  readonly place: ts.Node;
  readonly text: string;
  readonly file: ts.SourceFile;
}

function mutation({ place, text, file }: Place): Mutation {
  const start = place.getStart(file);
  const end = place.getEnd();
  const line = file.getLineAndCharacterOfPosition(start).line + 1;
  const around = aroundOf(place, file);
  return { start, end, text, line, before: oneLine(place.getText(file)), after: oneLine(text), around };
}

function aroundOf(place: ts.Node, file: ts.SourceFile): Around {
  // The operator of a comparison is no expression.
  const whole = place.kind in SWAPPED ? place.parent : place;
  const isStatement = ts.isStatement(whole);
  return { start: whole.getStart(file), end: whole.getEnd(), isStatement, isAtLoad: isAtLoad(whole) };
}

function isAtLoad(node: ts.Node): boolean {
  if (ts.isSourceFile(node)) return true;
  if (ts.isFunctionLike(node)) return false;
  if (ts.isPropertyDeclaration(node) && !(ts.getCombinedModifierFlags(node) & ts.ModifierFlags.Static)) return false;
  return isAtLoad(node.parent);
}

function oneLine(text: string): string {
  const line = text.replace(/\s+/g, " ");
  return line.length > 70 ? `${line.slice(0, 69)}…` : line;
}
