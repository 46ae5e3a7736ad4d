import { AppError } from "../../../../common/errors.ts";
import { QUERY_FOLLOWED_STEPS_MAX } from "../../../../common/limits.ts";
import {
  type Condition,
  type Field,
  partsOfCondition,
  printCondition,
  type Select,
} from "../../../../common/mql/index.ts";
import type { RelationPath } from "../expressions/fields.ts";
import type { Arguments } from "../expressions/literal.ts";
import { about } from "../expressions/placing.ts";
import { fieldsOf, fieldsOfSelect } from "./columns.ts";
import { allOf, conjuncts } from "./pushdown.ts";
import type { Scope } from "./names/scope.ts";

/** Relations to follow from the rows of one class tree. */
export interface RelationPlan {
  readonly paths: readonly RelationPath[];
  /** All objects that the principal may see. Other ends of relations are left out. */
  readonly everything: Scope;
  readonly asOfMs: number | undefined;
}

/**
 * Relations to follow in two steps. Those that a condition uses are read first; the others only for rows that fulfil
 * it.
 */
export interface FollowPlan {
  readonly asked: RelationPlan | undefined;
  /** The condition on the relations in `asked`. */
  readonly where: Condition | undefined;
  readonly answered: RelationPlan | undefined;
}

export interface Following {
  readonly values: Arguments;
  readonly asOfMs: number | undefined;
}

/** A condition in two parts: one on the objects themselves, and one that uses relations. */
export interface SplitCondition {
  readonly own: Condition | undefined;
  readonly related: Condition | undefined;
}

export function splitCondition(where: Condition | undefined, scope: Scope): SplitCondition {
  const related = new Set(conjuncts(where).filter((condition) => isRelated(condition, [scope])));
  if (related.size === 0) return { own: where, related: undefined };
  return { own: allOf(conjuncts(where).filter((one) => !related.has(one))), related: allOf([...related]) };
}

/** True if the condition uses a relation from one of these scopes. */
export function isRelated(condition: Condition, scopes: readonly Scope[]): boolean {
  const fields = partsOfCondition(condition).flatMap(fieldsOf);
  return fields.some((field) => about(field.span, () => scopes.some((scope) => scope.followed(field) !== undefined)));
}

/** Plans only the relations that the condition uses, none of the selected fields. Undefined if it uses no relation. */
export function askedPlan({ related }: SplitCondition, scope: Scope, following: Following): FollowPlan | undefined {
  const asked = related && relationPlan(partsOfCondition(related).flatMap(fieldsOf), scope, following);
  return asked && { asked, where: related, answered: undefined };
}

/** Plans the relations of a whole SELECT. Undefined if it uses no relation. */
export function followPlan(
  select: Select,
  split: SplitCondition,
  { scope, following }: { readonly scope: Scope; readonly following: Following },
): FollowPlan | undefined {
  const { asked } = askedPlan(split, scope, following) ?? {};
  const known = new Set(asked?.paths.map(({ key }) => key));
  const whole = relationPlan(fieldsOfSelect(select), scope, following);
  const paths = whole?.paths.filter(({ key }) => !known.has(key)) ?? [];
  const answered = whole && paths.length > 0 ? { ...whole, paths } : undefined;
  return asked || answered ? { asked, where: split.related, answered } : undefined;
}

export function relationPlan(
  fields: readonly Field[],
  scope: Scope,
  { values, asOfMs }: Following,
): RelationPlan | undefined {
  const paths = new Map<string, RelationPath>();
  for (const field of fields) {
    const { relation } = about(field.span, () => scope.followed(field, values)) ?? {};
    if (relation) paths.set(relation.key, relation);
  }
  if (paths.size === 0) return undefined;
  checkSteps([...paths.values()]);
  return { paths: [...paths.values()], everything: scope.everything, asOfMs };
}

/** Relations that several conditions on the same objects follow, each path once. */
export function commonRelations(plans: readonly RelationPlan[]): RelationPlan | undefined {
  const [first] = plans;
  if (!first) return undefined;
  const paths = [...new Map(plans.flatMap((plan) => plan.paths).map((path) => [path.key, path])).values()];
  checkSteps(paths);
  return { ...first, paths };
}

function checkSteps(paths: readonly RelationPath[]): void {
  const steps = stepsOf(paths).length;
  if (steps > QUERY_FOLLOWED_STEPS_MAX)
    throw new AppError(
      "too_large",
      `[Valid] Relations are followed over ${steps} steps: at most ${QUERY_FOLLOWED_STEPS_MAX}.`,
      {
        details: { limit: "QUERY_FOLLOWED_STEPS_MAX" },
      },
    );
}

/** A step of one edge, from the objects that the steps before it lead to. */
export interface Step {
  /** Identifies the step together with the steps before it. */
  readonly key: string;
  readonly type: string;
  /** Key of the step before; absent for the first one. */
  readonly before: string | undefined;
  /** The paths that end here. */
  readonly paths: readonly RelationPath[];
}

/** All steps of the paths, each once. A step comes after the step before it in its path. */
export function stepsOf(paths: readonly RelationPath[]): readonly Step[] {
  const steps = new Map<string, Step>();
  for (const { steps: types } of paths) {
    for (const [at, type] of types.entries()) {
      const key = keyOf(types.slice(0, at + 1));
      const before = at === 0 ? undefined : keyOf(types.slice(0, at));
      if (!steps.has(key))
        steps.set(key, { key, type, before, paths: paths.filter((path) => keyOf(path.steps) === key) });
    }
  }
  return [...steps.values()];
}

/** For EXPLAIN. */
export function describeFollowing({ asked, where, answered }: FollowPlan): readonly string[] {
  return [
    ...(asked ? [describeRelations(asked)] : []),
    ...(where ? [`filter ${printCondition(where)}`] : []),
    ...(answered ? [describeRelations(answered)] : []),
  ];
}

export function describeRelations({ paths }: RelationPlan): string {
  return `follow ${paths.map(({ key }) => key).join(", ")} for each page of rows`;
}

function keyOf(types: readonly string[]): string {
  return JSON.stringify(types);
}
