import {
  type Delete,
  type Insert,
  type InsertJson,
  printCondition,
  type Select,
  type Update,
} from "../../../../common/mql/index.ts";
import type { Row } from "../../../../common/value.ts";
import { repeatableChange } from "../batch/found.ts";
import { repeatableInsert } from "../batch/rows.ts";
import type { Arguments } from "../expressions/literal.ts";
import { settled } from "../expressions/settled.ts";
import { eachChecked, requireFew } from "./executions.ts";
import { readsOf } from "../plan/plan.ts";
import { describeFollowing, splitCondition } from "../plan/relations.ts";
import { scopeOf } from "../plan/names/scope.ts";
import { plainMeta } from "../run/meta.ts";
import { planReading } from "../run/reading.ts";
import type { Reading } from "../run/run.ts";
import { inSlices } from "../run/slice.ts";
import type { ColumnMeta } from "../types.ts";
import { askingChange } from "../write/asking.ts";
import { bindInsert, bindInsertJson, insertedRelations, runInsert } from "../write/insert.ts";
import { UnstoredRows } from "../write/unstored.ts";
import { bindDelete } from "../write/deletes.ts";
import { bindClear, bindUpdate, type Change } from "../write/write.ts";
import { type PrepareContext, type Prepared, writeContext, one, presentOf } from "./prepared.ts";
import { describeRules } from "../plan/names/rules.ts";
import { readSteps } from "./reading.ts";

const COUNT_COLUMN: ColumnMeta = { name: "count", title: "count", type: "bigint" };
const IDS_COLUMN: ColumnMeta = { name: "ids", title: "ids", type: "list" };

export async function insert(statement: Insert | InsertJson, context: PrepareContext): Promise<Prepared> {
  const works = await inSlices(
    statement.kind === "insert" ? bindInsert(statement, context) : bindInsertJson(statement, context),
    context.slices,
    context.memory,
  );
  const rootclass = works[0]?.view.path ?? "";
  const unstored = new UnstoredRows();
  return {
    meta: plainMeta("insert", rootclass, [COUNT_COLUMN, IDS_COLUMN]),
    isRead: false,
    repeatable: repeatableInsert(works, { ...writeContext(context, []), unstored }),
    relations: insertedRelations(works),
    warnings: () => unstored.warnings(),
    async run() {
      const into = { ...writeContext(context, []), unstored, inCommit: context.inCommit };
      const ids = await runInsert(works, into, context.slices);
      return one([{ count: ids.length, ids }]);
    },
    explain: () => Promise.resolve(works.map((work) => `insert ${work.rows.length} into ${work.view.path}`)),
  };
}

export async function change(
  type: "update" | "delete",
  statement: Update | Delete,
  context: PrepareContext,
): Promise<Prepared> {
  const { executions, catalog, slices } = context;
  const [first = []] = executions;
  const only = bindChange(statement, context, first);
  requireFew(statement, executions);
  await eachChecked(context, (values) => bindChange(statement, context, values));
  const relations = [...(only.relations ?? [])];
  return {
    meta: plainMeta(type, statement.class.path, [COUNT_COLUMN]),
    isRead: false,
    repeatable:
      executions.length === 1 ? repeatableChange(only, { ...writeContext(context, first), catalog }) : undefined,
    relations,
    async run() {
      const rows: Row[] = [];
      for (const values of executions) {
        if (slices.isOverNow()) await slices.pause();
        const bound = values === first ? only : bindChange(statement, context, values);
        const own = writeContext(context, values);
        const { inCommit } = context;
        rows.push({ count: await bound.run(executions.length === 1 ? { ...own, inCommit } : own) });
        if (bound !== only) relations.push(...(bound.relations ?? []));
      }
      return one(rows);
    },
    async explain() {
      const scope = scopeOf(context.principal, catalog, statement.class).following();
      const { computed = [], follows, asks } = only;
      const { where } = asks?.unanswered ?? settled(statement, presentOf(context, first));
      const { own } = splitCondition(where, scope);
      const reads = readsOf(scope, own, { values: first, veiled: true });
      return [
        ...((await asks?.describe((inner) => readSteps(inner, context))) ?? []),
        ...(await readSteps(reads, context)),
        ...(own ? [`filter ${printCondition(own)}`] : []),
        ...describeRules(scope),
        ...(follows ? describeFollowing(follows) : []),
        `${type} what is found`,
        ...(computed.length > 0 ? [`set ${computed.join(", ")} by each object as it is then`] : []),
      ];
    },
  };
}

function bindChange(written: Update | Delete, context: PrepareContext, values: Arguments): Change {
  const { principal, catalog } = context;
  const statement = settled(written, presentOf(context, values));
  const bind = (whole: Update | Delete): Change => boundChange(whole, context, values);
  const inner = (part: Select): Reading => planReading(part, principal, { catalog, values });
  return askingChange(statement, { bind, inner }) ?? bind(statement);
}

function boundChange(statement: Update | Delete, { principal, catalog }: PrepareContext, values: Arguments): Change {
  const scope = scopeOf(principal, catalog, statement.class);
  if (statement.kind === "update") return bindUpdate(statement, { scope, values });
  if (statement.column !== undefined) return bindClear(statement, statement.column, { scope, values });
  return bindDelete(statement, scope, values);
}
