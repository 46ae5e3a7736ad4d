import type { Batch, Explain, Statement } from "../../../../common/mql/index.ts";
import type { Row } from "../../../../common/value.ts";
import { ANALYZED_COLUMNS, Measures, planned, requireReading } from "./analyzed.ts";
import { plainMeta } from "../run/meta.ts";
import type { PlanStep } from "../run/run.ts";
import type { ColumnMeta } from "../types.ts";
import { type PrepareContext, type Prepared, one } from "./prepared.ts";
import { select } from "./reading.ts";
import { insert, change } from "./changing.ts";
import { definition } from "./defining.ts";

/** Throws at once, or rejects. */
export function prepare(statement: Statement, context: PrepareContext): Prepared | Promise<Prepared> {
  switch (statement.kind) {
    case "select":
    case "union":
    case "match":
      return select(statement, context);
    case "selectEdgeTypes":
      return edgeTypes(context);
    case "insert":
    case "insertJson":
      return insert(statement, context);
    case "update":
      return change("update", statement, context);
    case "delete":
      return change("delete", statement, context);
    case "createClass":
    case "dropClass":
    case "alterClass":
    case "createEdgeType":
    case "dropEdgeType":
      return definition(statement, context);
    case "explain":
      return explain(statement, context);
    case "batch":
      return batch(statement, context);
  }
}

function edgeTypes(context: PrepareContext): Prepared {
  const columns = ["name", "remedy"].map((name): ColumnMeta => ({ name, title: name, type: "varchar" }));
  const rows = context.catalog.edgeTypes().map(({ name, remedy }): Row => ({ name, remedy }));
  const meta = plainMeta("select edge", "", columns);
  return {
    meta,
    isRead: true,
    run: () => Promise.resolve(one(rows)),
    explain: () => Promise.resolve(["table of edge types"]),
  };
}

const STEP_COLUMNS: readonly ColumnMeta[] = [
  { name: "step", title: "step", type: "int" },
  { name: "work", title: "work", type: "varchar" },
  { name: "estimated", title: "estimated", type: "bigint" },
];

async function explain(statement: Explain, context: PrepareContext): Promise<Prepared> {
  if (statement.analyzes) return analyze(statement, context);
  const inner = await prepare(statement.statement, context);
  return {
    meta: plainMeta("explain", inner.meta.rootclass, STEP_COLUMNS),
    isRead: true,
    async run() {
      return one((await inner.explain()).map((step, index): Row => ({ step: index + 1, ...planned(step) })));
    },
    explain: () => inner.explain(),
  };
}

async function analyze({ statement }: Explain, context: PrepareContext): Promise<Prepared> {
  requireReading(statement);
  const measures = new Measures(context);
  const inner = await prepare(statement, { ...context, measures });
  return {
    meta: plainMeta("explain", inner.meta.rootclass, ANALYZED_COLUMNS),
    isRead: true,
    run: async () => measures.run(await inner.explain(), () => inner.run()),
    explain: () => inner.explain(),
  };
}

/** Only for EXPLAIN of a batch. The service runs a batch itself. */
async function batch(statement: Batch, context: PrepareContext): Promise<Prepared> {
  const { slices } = context;
  const parts: Prepared[] = [];
  for (const part of statement.statements) {
    if (slices.isOverNow()) await slices.pause();
    parts.push(await prepare(part, context));
  }
  return {
    meta: parts.at(-1)?.meta ?? plainMeta("select"),
    isRead: parts.every((part) => part.isRead),
    async run() {
      let rows = one<Row>([]);
      for (const part of parts) rows = await part.run();
      return rows;
    },
    async explain() {
      const lines: PlanStep[] = [];
      for (const part of parts) {
        if (slices.isOverNow()) await slices.pause();
        lines.push(...(await part.explain()));
      }
      return lines;
    },
  };
}
