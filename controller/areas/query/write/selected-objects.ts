import type { Condition } from "../../../../common/mql/index.ts";
import { chained } from "../../../../common/pages.ts";
import type { ObjectRow, ReadRequest } from "../../objects/index.ts";
import type { Arguments } from "../expressions/literal.ts";
import type { Predicate } from "../expressions/predicate.ts";
import { readsOf } from "../plan/plan.ts";
import { askedPlan, type FollowPlan, splitCondition } from "../plan/relations.ts";
import type { Scope } from "../plan/names/scope.ts";
import { followed } from "../run/relatedrows.ts";
import { filterOf, matching, type RunContext } from "../run/run.ts";
import { Slices } from "../run/slice.ts";
import { workOf } from "../run/work.ts";

type Pages = AsyncIterable<readonly ObjectRow[]>;

/** The objects that the condition of a change selects. */
export interface SelectedObjects {
  /** Reads that together return all these objects. */
  readonly reads: readonly ReadRequest[];
  /**
   * Test without related objects: the principal sees the object, and the object fulfils the parts of the condition
   * without relations.
   */
  readonly filter: Predicate<ObjectRow>;
  /** The parts of the condition that use relations; absent: none. */
  readonly follows: FollowPlan | undefined;
  /** Yields the objects. `besides` are further candidates that pass the filter and are not among the reads. */
  found(context: RunContext, besides?: Pages): Pages;
}

/** Checks names and values before anything is read. */
export function selectedBy(where: Condition | undefined, target: Scope, values: Arguments): SelectedObjects {
  const scope = target.following();
  const split = splitCondition(where, scope);
  const follows = askedPlan(split, scope, { values, asOfMs: undefined });
  const reads = readsOf(scope, split.own, { values });
  const filter = filterOf({ scope, where: split.own, values });
  const follow = followed({ follows, scope, values });
  return {
    reads,
    filter,
    follows,
    found(context, besides) {
      const slices = new Slices(context);
      const living = matching({ reads, filter, slices, rowWork: workOf(split.own) }, context);
      return follow(besides ? chained([living, besides]) : living, { ...context, slices });
    },
  };
}

/** The reads on which the selection depends. Relations may lead to any object. */
export function dependence({ reads, follows }: SelectedObjects): Pick<SelectedObjects, "reads" | "follows"> {
  return { reads: follows ? [...reads, { class: "/", subtree: true }] : reads, follows };
}
