import { printCondition, type Select, type Union } from "../../../../common/mql/index.ts";
import type { Row } from "../../../../common/value.ts";
import type { ObjectRow, ReadRequest } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import type { SortKey } from "../expressions/sort.ts";
import { type JoinPlan, planJoin } from "../plan/join.ts";
import { countPlan } from "../plan/counting.ts";
import { inOrderPlan } from "../plan/inorder.ts";
import { cursorAfter } from "../plan/paging.ts";
import {
  describeShape,
  describeTable,
  type PlanContext,
  planSelect,
  readsOf,
  type SelectPlan,
  type TablePlan,
  type LeftOut,
} from "../plan/plan.ts";
import { requireBound } from "./bound.ts";
import { conditionsOf, joined } from "./hashjoin.ts";
import { describeFollowing, describeRelations } from "../plan/relations.ts";
import { joinMeta, selectMeta, unionMeta } from "./meta.ts";
import { answeredKinds } from "./groups.ts";
import { shaped } from "./pipeline.ts";
import { followed, rowBytes } from "./relatedrows.ts";
import { answersInside } from "./answers.ts";
import { countedOr } from "./counted.ts";
import { foundInOrder } from "./inorder.ts";
import { isOnePass, onePass } from "./one-pass.ts";
import { filterOf, matching, type PlanStep, type RowReading, type RunContext } from "./run.ts";
import { drained, Slices } from "./slice.ts";
import { timed } from "./steps.ts";
import { readingWithSubSelects } from "./subselects.ts";
import { Arrivals, arrivalOf } from "./arrivals.ts";
import { planUnion, united } from "./union.ts";
import { workOf } from "./work.ts";

export function planReading(statement: Select | Union, principal: Principal, context: PlanContext): RowReading {
  return drained(planInSteps(statement, principal, context));
}

/** Like `planReading`, in steps. A step may take long if the conditions of the statement are long. */
export function* planInSteps(
  statement: Select | Union,
  principal: Principal,
  context: PlanContext,
): Generator<undefined, RowReading> {
  const { leftOut = { more: false } } = context;
  const nested = readingWithSubSelects(statement, {
    whole: (part) => planReading(part, principal, { ...context, leftOut }),
    inner: (part) => planReading(part, principal, { ...context, asOf: undefined, leftOut: { more: false } }),
  });
  if (nested) return nested;
  yield;
  if (statement.kind === "union") return yield* unionReading(statement, principal, { ...context, leftOut });
  return (yield* planPart(statement, principal, { ...context, leftOut })).reading;
}

interface Part {
  readonly plan: SelectPlan | JoinPlan;
  readonly reading: RowReading;
}

export type PartContext = PlanContext & {
  readonly leftOut: LeftOut;
  /** Called with each row that a SELECT of single objects answers without an order. */
  readonly onRow?: ((answered: Row, row: ObjectRow) => void) | undefined;
};

/** Like `planReading`, in one step: for a short SELECT without another one inside. */
export function plannedAtOnce(select: Select, principal: Principal, context: PartContext): RowReading {
  if (select.joins.length > 0) return joinReading(planJoin(select, principal, context), context.leftOut);
  return selectReading(planSelect(select, principal, context), context);
}

function* planPart(select: Select, principal: Principal, context: PartContext): Generator<undefined, Part> {
  const asOf = select.asOf ?? context.asOf;
  const inside = answersInside(select, {
    principal,
    inner: (part) => planReading(part, principal, { ...context, asOf, answers: undefined, leftOut: { more: false } }),
  });
  const { plan, reading } = yield* planOver(select, principal, { ...context, answers: inside?.answers });
  return { plan, reading: inside ? inside.around(reading) : reading };
}

function* planOver(select: Select, principal: Principal, context: PartContext): Generator<undefined, Part> {
  if (select.joins.length > 0) {
    const plan = planJoin(select, principal, context);
    yield;
    return { plan, reading: joinReading(plan, context.leftOut) };
  }
  const plan = planSelect(select, principal, context);
  yield;
  return { plan, reading: selectReading(plan, context) };
}

function selectReading(plan: SelectPlan, { leftOut, onRow }: PartContext): RowReading {
  const filter = filterOf(plan);
  requireBound(plan);
  let cursor: string | undefined;
  const onPageEnd = (keys: readonly SortKey[]): void => {
    cursor = plan.paging && cursorAfter(plan.paging, keys);
  };
  const counting = countPlan(plan);
  const order = inOrderPlan(plan);
  const isOne = isOnePass(plan);
  const follow = followed(plan);
  const fromRows = (context: RunContext): AsyncIterable<readonly Row[]> => {
    const slices = new Slices(context);
    const work = { reads: plan.reads, filter, slices, rowWork: workOf(plan.where) };
    if (isOne && !context.steps) return onePass(plan, work, { context, told: { onRow, onMore: notes(leftOut) } });
    const found = order ? foundInOrder(plan, { order, ...work }, context) : matching(work, context);
    const { steps } = context;
    const passed = timed(steps, "filter", found);
    const whole = follow(passed, { ...context, slices });
    return shaped(plan, {
      source: plan.follows ? timed(steps, "relations", whole) : whole,
      slices,
      steps,
      bytesOf: rowBytes,
      onPageEnd,
      onRow,
      onMore: notes(leftOut),
      sortFolder: context.sortFolder,
    });
  };
  return {
    meta: selectMeta(plan, { leftOut, cursor: () => cursor }),
    kindsOf: (name) => answeredKinds(plan, name),
    rows: (context) => (counting ? countedOr(plan, counting, context, () => fromRows(context)) : fromRows(context)),
    async describe(stepsOf) {
      const follows = plan.follows ? describeFollowing(plan.follows) : [];
      const reads = veiledReads(plan).map((read) => (order ? { ...read, order: order.order } : read));
      const steps = await stepsOf(reads, counting?.requests);
      return [...describeTable(plan, steps), ...follows, ...describeShape(plan)];
    },
  };
}

function joinReading(plan: JoinPlan, leftOut: LeftOut): RowReading {
  const conditions = conditionsOf(plan);
  requireBound(plan);
  return {
    meta: joinMeta(plan, leftOut),
    kindsOf: (name) => answeredKinds(plan, name),
    rows(context) {
      const slices = new Slices(context);
      return shaped(plan, {
        source: timed(context.steps, "join", joined(plan, conditions, { ...context, slices })),
        slices,
        steps: context.steps,
        bytesOf: (row) => row.reduce((bytes, own) => bytes + (own ? rowBytes(own) : 0), 0),
        onMore: notes(leftOut),
        sortFolder: context.sortFolder,
      });
    },
    async describe(stepsOf) {
      const lines: PlanStep[] = [];
      for (const [index, table] of plan.tables.entries()) {
        lines.push(...describeTable(table, await stepsOf(veiledReads(table))));
        if (table.relations) lines.push(describeRelations(table.relations));
        const link = plan.links[index - 1];
        if (link)
          lines.push(
            `${link.isOuter ? "left join" : "join"} by ${link.own.label} = ${link.earlier.label}, ${table.scope.root} held in memory`,
          );
      }
      return [...lines, ...(plan.where ? [`filter ${printCondition(plan.where)}`] : []), ...describeShape(plan)];
    },
  };
}

function* unionReading(union: Union, principal: Principal, context: PartContext): Generator<undefined, RowReading> {
  const { leftOut } = context;
  const arrivals = new Arrivals();
  const onRow = union.orderBy.length > 0 ? arrivals.note : undefined;
  const planned: Part[] = [];
  for (const select of union.selects) {
    const whole = { ...select, limit: { kind: "number" as const, text: "-1", span: select.span } };
    planned.push(yield* planPart(whole, principal, { ...context, onRow, asOf: union.asOf ?? context.asOf }));
    yield;
  }
  const parts = planned.map((part) => part.reading);
  const plans = planned.map((part) => part.plan);
  const plan = planUnion(union, plans, context.values);
  arrivals.descending = arrivalOf(plan, plans);
  return {
    meta: unionMeta(
      parts.map((part) => part.meta),
      leftOut,
    ),
    kindsOf: (name) => parts.flatMap((part) => part.kindsOf(name)),
    rows: (run) =>
      timed(
        run.steps,
        "union",
        united(
          plan,
          parts.map((part) => part.rows(run)),
          { slices: new Slices(run), arrivals, onMore: notes(leftOut), sortFolder: run.sortFolder },
        ),
      ),
    async describe(stepsOf) {
      const lines: PlanStep[] = [];
      for (const part of parts) lines.push(...(await part.describe(stepsOf)));
      const shape = { ...plan, orderBy: plan.orderBy.map(({ name, descending }) => ({ label: name, descending })) };
      return [
        ...lines,
        plan.isAll ? "all rows of the parts" : "different rows of the parts",
        ...describeShape({ ...shape, distinct: false, grouping: undefined }),
      ];
    },
  };
}

function notes(leftOut: LeftOut): () => void {
  return () => {
    leftOut.more = true;
  };
}

/** The reads without narrowing by the principal's row condition, which must not be shown. */
function veiledReads({ scope, where, values, reads }: TablePlan): readonly ReadRequest[] {
  const { newestFirst, asOfMs } = reads[0] ?? {};
  return readsOf(scope, where, { values, veiled: true, asOfMs, ...(newestFirst ? { newestFirst } : {}) });
}
