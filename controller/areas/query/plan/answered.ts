import { AppError } from "../../../../common/errors.ts";
import type { Source } from "../../../../common/mql/index.ts";
import type { Row } from "../../../../common/value.ts";
import type { ClassCatalog, ClassView, Column, ObjectRow } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import type { KnownKind } from "../expressions/kind.ts";
import type { ColumnMeta } from "../types.ts";
import { Scope, scopeOf } from "./names/scope.ts";
import { VisibleTree } from "./names/tree.ts";

/** Answers of the SELECTs behind FROM or JOIN of a statement. */
export type Answers = ReadonlyMap<Source, Answer>;

/**
 * A SELECT as a table. Its class is in no catalog, and the objects of the class are the rows that the SELECT answers.
 */
export interface Answer {
  readonly view: ClassView;
  readonly tree: VisibleTree;
}

export type AnsweredColumn = ColumnMeta & KnownKind;

/** The path of the class is in no catalog, because it does not begin with a slash. */
export function answerOf(principal: Principal, alias: string | undefined, answered: readonly AnsweredColumn[]): Answer {
  const columns = answered.map(columnOf);
  const byName = new Map(columns.map((column) => [column.name, column]));
  if (byName.size < columns.length) throw twice(columns);
  const path = alias ?? "SELECT";
  const view: ClassView = {
    cid: -2,
    path,
    label: path,
    parent: undefined,
    kind: "record",
    columns,
    keys: [],
    options: OPTIONS,
    modifiedAtMs: 0,
    system: true,
    guard: undefined,
    column: (name) => byName.get(name),
  };
  const content = { found: [view], relations: NO_RELATIONS, isAnswer: true };
  return { view, tree: new VisibleTree(principal, { path, subtree: false }, content) };
}

/** A row of the answer as an object. It has no time, so `first` and `last` use the order of the rows. */
export function answeredRow({ view }: Answer, values: Row): ObjectRow {
  return { id: "", class: view, values, vtimeMs: 0, ctimeMs: 0 };
}

/** The scope of a class or tree that a statement names, or of the answer of a SELECT in its place. */
export function sourceScope(
  principal: Principal,
  { catalog, answers }: { readonly catalog: ClassCatalog; readonly answers?: Answers | undefined },
  source: Source,
  alias = source.alias,
): Scope {
  if (source.kind === "class") return scopeOf(principal, catalog, { ...source, alias });
  const answer = answers?.get(source);
  if (!answer) throw new RangeError("a SELECT behind FROM is planned before the one around it");
  return new Scope(principal, alias, answer.tree);
}

const NO_RELATIONS: ReadonlySet<string> = new Set();

const OPTIONS: ClassView["options"] = {
  keyMode: "manu",
  ttlSeconds: undefined,
  version: false,
  versionTtlSeconds: undefined,
  timeZone: undefined,
  autosearch: false,
  alias: undefined,
  nickname: undefined,
  remedy: undefined,
  hints: {},
};

function columnOf({ enum: labels, ...column }: AnsweredColumn, at: number): Column & KnownKind {
  return {
    ...column,
    type: column.type as Column["type"],
    ...(labels ? { labels } : {}),
    number: -1 - at,
    definedBy: "",
    indexed: false,
    key: false,
  };
}

function twice(columns: readonly Column[]): AppError {
  const names = columns.map(({ name }) => name);
  const name = names.find((one, at) => names.indexOf(one) !== at) ?? "";
  return new AppError("invalid", `[Valid] Two columns of the SELECT in FROM are called ${name}: name one with AS.`);
}
