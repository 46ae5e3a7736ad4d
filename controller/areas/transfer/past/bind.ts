import { AppError } from "../../../../common/errors.ts";
import type { Insert, Steps, ValueNode } from "../../../../common/mql/index.ts";
import type { Value } from "../../../../common/value.ts";
import type { LostRelation, PastRelation } from "../../objects/index.ts";
import { writesAll, type Principal } from "../../permissions/index.ts";
import { bindInsert, insertedId, literal, type InsertWork } from "../../query/index.ts";
import { timeOf, timeText } from "./times.ts";

/** The times that a row had in the exporting installation ("former times"), and the changes of its relations. */
export interface PastRow {
  readonly kind: "present" | "version" | "removal";
  /** Full id of the row's object. */
  readonly id: string;
  readonly timeUs: number;
  readonly createdMs: number;
  /** For versions only: the time at which the object would have expired. */
  readonly untilMs?: number | undefined;
  readonly added: readonly PastRelation[];
  readonly dropped: readonly PastRelation[];
  readonly lost: readonly LostRelation[];
}

/** Rows of an INSERT. If they have former times, each row is a work of its own. */
export interface BoundWork extends InsertWork {
  readonly past?: PastRow;
}

type InsertTarget = Parameters<typeof bindInsert>[1];

const TIMES: ReadonlySet<string> = new Set(["vtime", "ctime"]);

/** True if the rows contain the times `vtime` or `ctime`. Ordinary inserts ignore these columns. */
export function namesTimes({ columns }: Insert): boolean {
  return columns.some((name) => TIMES.has(name.toLowerCase()));
}

/** Binds the rows of an export with times. Each row is a current object, an earlier state or a removal. */
export function* bindPast(statement: Insert, target: InsertTarget): Steps<readonly BoundWork[]> {
  const { past, at, columns } = statement;
  if (at) throw new AppError("invalid", "[Valid] AT and vtime name the time of a row: only one of them can be given.");
  const works: BoundWork[] = [];
  for (const values of statement.rows) {
    const kept = columns.flatMap((name, place) => (TIMES.has(name.toLowerCase()) ? [] : [place]));
    const row = { columns: kept.map((place) => columns[place]!), rows: [kept.map((place) => values[place]!)] };
    const [work] = yield* bindInsert({ ...statement, ...row, past: undefined }, target);
    if (work === undefined) throw new RangeError("an INSERT of one row has a work");
    const timeNode = (name: string): ValueNode | undefined =>
      values[columns.findIndex((column) => column.toLowerCase() === name)];
    const pastRow = pastRowOf(work, { kind: past?.kind ?? "present", timeNode, ...past });
    works.push({ ...work, atMs: latestMs(pastRow), past: pastRow });
  }
  return works;
}

function latestMs({ timeUs, lost }: PastRow): number {
  return Math.floor(lost.reduce((latestUs, { timeUs: lostUs }) => Math.max(latestUs, lostUs), timeUs) / 1_000);
}

interface Given extends Omit<NonNullable<Insert["past"]>, "kind"> {
  readonly kind: PastRow["kind"];
  timeNode(name: string): ValueNode | undefined;
}

function pastRowOf({ view, rows: [row = {}], scope }: InsertWork, given: Given): PastRow {
  const { kind, until, added, dropped, lost, timeNode } = given;
  if (view.kind === "record" || view.system)
    throw new AppError(
      "invalid",
      view.system
        ? `[Valid] Objects of ${view.path} are kept by their owner, with the times of its own.`
        : `[Valid] Records of ${view.path} have the time of their id, and no other.`,
    );
  const id = insertedId(view, row);
  if (id === undefined) throw new AppError("invalid", "[Valid] A row with times names the id of its object.");
  const vtime = timeNode("vtime");
  if (vtime === undefined) throw new AppError("invalid", "[Valid] vtime, the time of the write, is missing.");
  const timeUs = timeOf("vtime", literal(vtime, []));
  const ctime = timeNode("ctime");
  const createdMs = Math.floor((ctime === undefined ? timeUs : timeOf("ctime", literal(ctime, []))) / 1_000);
  if (createdMs > timeUs / 1_000) throw new AppError("invalid", "[Valid] ctime is later than vtime.");
  if (kind !== "present") requireWhole(scope.principal, view.path);
  if (kind === "removal" && (ctime !== undefined || Object.keys(row).some((name) => name !== "id")))
    throw new AppError("invalid", "[Valid] INSERT REMOVAL names id and vtime alone.");
  const relation = kind === "version" && Object.keys(row).find((name) => scope.isRelation(name));
  if (typeof relation === "string")
    throw new AppError("invalid", `[Valid] ${relation}: relations of an earlier state are told by ADDED and DROPPED.`);
  const isRelation: IsRelation = (type) => scope.isRelation(type);
  const untilMs = until && Math.floor(timeOf("UNTIL", literal(until, [])) / 1_000);
  if (untilMs !== undefined) requireLater("UNTIL", untilMs * 1_000, timeUs);
  const losses = lossesOf(lost, isRelation);
  for (const loss of losses) requireLater("LOST", loss.timeUs, timeUs);
  return {
    kind,
    id,
    timeUs,
    createdMs,
    untilMs,
    added: relationsOf("ADDED", added, isRelation),
    dropped: relationsOf("DROPPED", dropped, isRelation),
    lost: losses,
  };
}

/**
 * `AppError("denied")` unless the principal may write all of the class. A state replaces the whole object and its
 * history, so a user with rights on a part would overwrite the rest.
 */
function requireWhole(principal: Principal, path: string): void {
  if (writesAll(principal, path)) return;
  throw new AppError("denied", `${principal.user} may write only a part of ${path}, and so not its history.`, {
    details: { class: path },
  });
}

/** Throws `AppError("invalid")` unless the end of a state, or of a relation of it, is later than its write. */
function requireLater(name: string, endUs: number, timeUs: number): void {
  if (endUs <= timeUs) throw new AppError("invalid", `[Valid] ${name} ${timeText(endUs)} is not later than vtime.`);
}

type Members = { readonly [name: string]: Value };
type IsRelation = (type: string) => boolean;

function relationsOf(name: string, node: ValueNode | undefined, isRelation: IsRelation): readonly PastRelation[] {
  const form = `${name} is lists of ids by edge type, such as {"near":["box:1"]}`;
  return typesOf(name, { node, form, isRelation }).flatMap(([type, ids]) => {
    if (!Array.isArray(ids)) throw malformed(form);
    return (ids as readonly Value[]).map((target) => {
      if (typeof target !== "string") throw malformed(form);
      return { type, target };
    });
  });
}

function lossesOf(node: ValueNode | undefined, isRelation: IsRelation): readonly LostRelation[] {
  const form = 'LOST is times by id by edge type, such as {"near":{"box:1":"2026-01-02"}}';
  return typesOf("LOST", { node, form, isRelation }).flatMap(([type, times]) =>
    membersOf(times, form).map(([target, time]) => ({ type, target, timeUs: timeOf("LOST", time) })),
  );
}

function typesOf(
  name: string,
  {
    node,
    form,
    isRelation,
  }: { readonly node: ValueNode | undefined; readonly form: string } & {
    readonly isRelation: IsRelation;
  },
): readonly (readonly [type: string, Value])[] {
  const types = node === undefined ? [] : membersOf(literal(node, []), form);
  const unknown = types.find(([type]) => !isRelation(type));
  if (unknown) throw new AppError("not_found", `[NotExist] ${name}: there is no edge type ${unknown[0]}.`);
  return types;
}

function membersOf(value: Value, form: string): readonly (readonly [string, Value])[] {
  if (typeof value !== "object" || value === null || Array.isArray(value)) throw malformed(form);
  return Object.entries(value as Members);
}

function malformed(form: string): AppError {
  return new AppError("invalid", `[Format] ${form}.`);
}
