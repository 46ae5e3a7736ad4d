import { printCondition, type Select, type Union } from "../../../../common/mql/index.ts";
import type { ReadRequest } from "../../objects/index.ts";
import type { Principal } from "../../permissions/index.ts";
import type { SortKey } from "../expressions/sort.ts";
import { type JoinPlan, planJoin } from "../plan/join.ts";
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
import { joined } from "./hashjoin.ts";
import { joinMeta, selectMeta, unionMeta } from "./meta.ts";
import { shaped } from "./pipeline.ts";
import { withRelations } from "./relatedrows.ts";
import { filterOf, matching, type Reading } from "./run.ts";
import { Slices } from "./slice.ts";
import { readingWithSubSelects } from "./subselects.ts";
import { planUnion, united } from "./union.ts";
import { workOf } from "./work.ts";

export function planReading(statement: Select | Union, principal: Principal, context: PlanContext): Reading {
  const { leftOut = { more: false } } = context;
  const nested = readingWithSubSelects(statement, {
    whole: (part) => planReading(part, principal, { ...context, leftOut }),
    inner: (part) => planReading(part, principal, { ...context, leftOut: { more: false } }),
  });
  if (nested) return nested;
  if (statement.kind === "union") return unionReading(statement, principal, { ...context, leftOut });
  return statement.joins.length > 0
    ? joinReading(planJoin(statement, principal, context), leftOut)
    : selectReading(planSelect(statement, principal, context), leftOut);
}

function selectReading(plan: SelectPlan, leftOut: LeftOut): Reading {
  const filter = filterOf(plan);
  let cursor: string | undefined;
  const onPageEnd = (keys: readonly SortKey[]): void => {
    cursor = plan.paging && cursorAfter(plan.paging, keys);
  };
  return {
    meta: selectMeta(plan, { leftOut, cursor: () => cursor }),
    rows(context) {
      const slices = new Slices(context);
      const found = matching({ reads: plan.reads, filter, slices, rowWork: workOf(plan.where) }, context);
      const source = plan.relations ? withRelations(found, plan.relations, { ...context, slices }) : found;
      return shaped(plan, { source, slices, onPageEnd, onMore: notes(leftOut), sortFolder: context.sortFolder });
    },
    async describe(stepsOf) {
      const edges = plan.relations ? [`edges of ${plan.relations.types.join(", ")}`] : [];
      return [...describeTable(plan, await stepsOf(veiledReads(plan))), ...edges, ...describeShape(plan)];
    },
  };
}

function joinReading(plan: JoinPlan, leftOut: LeftOut): Reading {
  return {
    meta: joinMeta(plan, leftOut),
    rows(context) {
      const slices = new Slices(context);
      return shaped(plan, {
        source: joined(plan, { ...context, slices }),
        slices,
        onMore: notes(leftOut),
        sortFolder: context.sortFolder,
      });
    },
    async describe(stepsOf) {
      const lines: string[] = [];
      for (const [index, table] of plan.tables.entries()) {
        lines.push(...describeTable(table, await stepsOf(veiledReads(table))));
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

function unionReading(
  union: Union,
  principal: Principal,
  context: PlanContext & { readonly leftOut: LeftOut },
): Reading {
  const { leftOut } = context;
  const plans = union.selects.map((select) => {
    const whole = { ...select, limit: { kind: "number" as const, text: "-1", span: select.span } };
    const own = { ...context, asOf: union.asOf };
    return select.joins.length > 0 ? planJoin(whole, principal, own) : planSelect(whole, principal, own);
  });
  const parts = plans.map((plan) => (plan.kind === "join" ? joinReading(plan, leftOut) : selectReading(plan, leftOut)));
  const plan = planUnion(union, plans, context.values);
  return {
    meta: unionMeta(
      parts.map((part) => part.meta),
      leftOut,
    ),
    rows: (run) =>
      united(
        plan,
        parts.map((part) => part.rows(run)),
        { slices: new Slices(run), onMore: notes(leftOut), sortFolder: run.sortFolder },
      ),
    async describe(stepsOf) {
      const lines: string[] = [];
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

/** The narrowing by the principal's own row condition is left out: it would show the condition. */
function veiledReads({ scope, where, values, reads }: TablePlan): readonly ReadRequest[] {
  const { newestFirst, asOfMs } = reads[0] ?? {};
  return readsOf(scope, where, { values, veiled: true, asOfMs, ...(newestFirst ? { newestFirst } : {}) });
}
