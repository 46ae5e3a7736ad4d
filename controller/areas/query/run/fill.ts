import { AppError } from "../../../../common/errors.ts";
import { QUERY_FILLED_ROWS_MAX } from "../../../../common/limits.ts";
import type { Value } from "../../../../common/value.ts";
import type { GroupRow } from "../expressions/aggregates/aggregate.ts";
import { type Kind, NUMBER } from "../expressions/kind.ts";
import { bytesOf, type MemoryShare } from "../expressions/aggregates/memory.ts";
import { canonical } from "../expressions/questions.ts";
import type { FillPlan } from "../plan/fill.ts";

export interface Filling {
  readonly plan: FillPlan;
  /** Kinds of the aggregates' results. */
  readonly kinds: readonly Kind[];
  readonly memory: Pick<MemoryShare, "take">;
}

/** Groups that differ only in their step. */
interface Series {
  readonly keys: readonly Value[];
  readonly steps: Map<number, GroupRow>;
}

/** Estimated bytes of a group's place in its series. */
const PLACE_BYTES = 48;
/** Estimated bytes of the beginning of a step. */
const START_BYTES = 8;

/**
 * The groups and the empty steps between them, in the order of time, for each combination of the other keys. Groups
 * without a time stay as they are. Yields undefined while it has no row yet, so that the caller can pause.
 */
export function* filled(groups: Iterable<GroupRow>, filling: Filling): Iterable<GroupRow | undefined> {
  const { plan, memory } = filling;
  const series = new Map<string, Series>();
  for (const group of groups) {
    const timeMs = group.keys[plan.key];
    if (typeof timeMs !== "number") yield group;
    else {
      placeOf(series, group, filling).steps.set(timeMs, group);
      yield undefined;
    }
  }
  const range = rangeOf(series, plan);
  if (!range) return;
  if (series.size === 0) series.set("", { keys: [null], steps: new Map() });
  const starts = yield* startsOf(range, plan, Math.floor(QUERY_FILLED_ROWS_MAX / series.size));
  memory.take(starts.length * START_BYTES);
  for (const one of series.values()) yield* stepsOf(one, starts, filling);
}

function placeOf(series: Map<string, Series>, { keys }: GroupRow, { plan, memory }: Filling): Series {
  const others = keys.toSpliced(plan.key, 1);
  const name = canonical(others);
  memory.take(PLACE_BYTES);
  const known = series.get(name);
  if (known) return known;
  const made = { keys, steps: new Map<number, GroupRow>() };
  memory.take(bytesOf(name));
  series.set(name, made);
  return made;
}

interface Range {
  readonly fromMs: number;
  readonly toMs: number;
}

/**
 * Undefined if neither the condition nor a group gives the range. Without any group there are steps only if the step is
 * the only key.
 */
function rangeOf(series: ReadonlyMap<string, Series>, { fromMs, toMs, isAlone }: FillPlan): Range | undefined {
  let [least, most] = [fromMs ?? Infinity, toMs ?? -Infinity];
  for (const { steps } of series.values()) {
    for (const timeMs of steps.keys()) {
      least = Math.min(least, timeMs);
      most = Math.max(most, timeMs);
    }
  }
  const isKnown = Number.isFinite(least) && Number.isFinite(most) && least <= most;
  return isKnown && (series.size > 0 || isAlone) ? { fromMs: least, toMs: most } : undefined;
}

/**
 * The beginnings of all steps in the range. `AppError("too_large")` for more than `most`. Yields after each, so that
 * the caller can pause.
 */
function* startsOf(
  { fromMs, toMs }: Range,
  { steps }: FillPlan,
  most: number,
): Generator<undefined, readonly number[]> {
  const starts: number[] = [];
  for (let startMs = fromMs; startMs <= toMs; startMs = steps.nextMs(startMs)) {
    // Beyond the calendar there is no next step.
    if (starts.length >= most || Number.isNaN(steps.startMs(startMs))) throw tooMany();
    starts.push(startMs);
    yield undefined;
  }
  return starts;
}

function* stepsOf({ keys, steps }: Series, starts: readonly number[], { plan, kinds }: Filling): Iterable<GroupRow> {
  const empty = kinds.map((kind) => (typeof plan.value === "number" && kind === NUMBER ? plan.value : null));
  let results: readonly Value[] = empty;
  for (const startMs of starts) {
    const group = steps.get(startMs) ?? { keys: keys.with(plan.key, startMs), results };
    if (plan.value === "previous") ({ results } = group);
    yield group;
  }
}

function tooMany(): AppError {
  return new AppError(
    "too_large",
    `[Exec] FILL would answer more than ${QUERY_FILLED_ROWS_MAX} rows: take wider steps, a shorter time, or fewer groups.`,
    { details: { limit: "QUERY_FILLED_ROWS_MAX" } },
  );
}
