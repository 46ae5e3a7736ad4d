import type { Match } from "../../../../common/mql/index.ts";
import type { Unrestricted } from "../../objects/index.ts";
import { plainMeta } from "../run/meta.ts";
import { timeOfState } from "../plan/plan.ts";
import { describeRules } from "../plan/names/rules.ts";
import { describeRelations } from "../plan/relations.ts";
import type { PlanStep, Reading } from "../run/run.ts";
import { runMatch } from "./answer.ts";
import type { PatternContext } from "./patterns.ts";
import { type ChainPlan, type GraphPlan, type Hop, planMatch } from "./plan.ts";

export interface MatchContext extends Omit<PatternContext, "asOfMs"> {
  readonly objects: Unrestricted<"get" | "edges">;
}

/** A MATCH whose names, values and rights are checked. */
export function planGraph(match: Match, { objects, ...context }: MatchContext): Reading {
  const plan = planMatch(match, context);
  const earlierMs = timeOfState(match.diff, context.values);
  const earlier = earlierMs === undefined ? undefined : planMatch(match, context, earlierMs);
  const columns = [{ name: "graph", title: "graph", type: "map" }];
  return {
    meta: plainMeta(plan.paths ? "path" : "graph", "", columns),
    rows: (run) => runMatch(plan, earlier, { ...run, principal: context.principal, objects }),
    describe: (stepsOf) => describe(plan, { until: match.until, stepsOf }),
  };
}

async function describe(
  plan: GraphPlan,
  { until, stepsOf }: { until: string | undefined; stepsOf: Parameters<Reading["describe"]>[0] },
): Promise<readonly PlanStep[]> {
  const lines: PlanStep[] = [];
  for (const chain of plan.chains) {
    lines.push(...(await stepsOf(chain.nodes[chain.anchor]?.reads({ veiled: true }) ?? [])), ...hopSteps(chain));
  }
  lines.push(...describeRules(plan.scope));
  if (plan.relations) lines.push(describeRelations(plan.relations));
  if (until !== undefined) lines.push(`go on from nothing called ${until}`);
  if (plan.paths)
    lines.push(
      `${plan.paths.mode === "any" ? "combinations" : `${plan.paths.mode} paths`} of ${plan.paths.tags.join(", ")}`,
    );
  return lines;
}

/**
 * One line for each hop in the order of reading: from the anchor to the end, then from the anchor back to the start.
 */
function hopSteps({ nodes, hops, anchor }: ChainPlan): readonly string[] {
  const on = hops.slice(anchor).map((hop, at) => `${hopStep(hop, "out")} to ${nodes[anchor + at + 1]?.label ?? ""}`);
  const back = hops.slice(0, anchor).map((hop, at) => `${hopStep(hop, "in")} to ${nodes[at]?.label ?? ""}`);
  return [`begin at ${nodes[anchor]?.label ?? ""}`, ...on, ...back.reverse()];
}

function hopStep({ direction, type, depth }: Hop, along: Hop["direction"]): string {
  const way =
    direction === "both" ? "edges of both directions" : direction === along ? "outgoing edges" : "incoming edges";
  const times = depth === 1 ? "" : depth === Infinity ? ", any number," : `, up to ${depth},`;
  return `${way} of ${type ?? "every type"}${times}`;
}
