import { AppError } from "../../../../common/errors.ts";
import { TRIGGERS_PER_CLASS_MAX, TRIGGERS_PER_TENANT_MAX } from "../../../../common/limits.ts";
import { requireExpected, type Expected, type Stamped } from "../../../../common/revisions.ts";
import type { TriggerDefinition, TriggerVersion } from "../types.ts";
import { parentPath, type Definitions } from "./definition.ts";
import type { Draft } from "./draft.ts";
import { checkTriggerName, triggerName } from "./naming.ts";
import type { LoadedClass } from "./views.ts";

/** The durable subscription for triggers that run after a write. It exists while the tenant has such triggers. */
export const TRIGGER_SUBSCRIPTION = "triggers";

/** If a class has this hint with `false`, it does not run the triggers of the classes above it. */
const INHERITANCE_HINT = "inherittriggers";

/** Classes and triggers at one moment. */
interface Defined {
  readonly definitions: Definitions;
  get(path: string): LoadedClass | undefined;
}

/** The stamp of the trigger's last change. Its revision is the time, which no two versions share. */
export function triggerStamp({ modifiedAtMs, author }: TriggerDefinition): Stamped {
  return { stamp: { revision: String(modifiedAtMs), by: author, atMs: modifiedAtMs } };
}

/** Stores the trigger and returns it as stored: its time is later than that of the version before. */
export function putTrigger(draft: Draft, trigger: TriggerDefinition, expected?: Expected): TriggerDefinition {
  checkTriggerName(trigger.name);
  const definition = draft.requireClass(trigger.class);
  if (definition.system)
    throw new AppError("denied", `[Valid] class ${trigger.class} belongs to the platform and takes no triggers.`);
  const former = draft.triggers.get(triggerName(trigger));
  requireExpected(expected, `The trigger ${triggerName(trigger)}`, former && triggerStamp(former));
  if (former === undefined) checkCount(draft, trigger.class);
  const modifiedAtMs = Math.max(trigger.modifiedAtMs, (former?.modifiedAtMs ?? 0) + 1);
  const sinceMs = former === undefined ? modifiedAtMs : (former.sinceMs ?? former.modifiedAtMs);
  const stored = { ...trigger, modifiedAtMs, sinceMs };
  draft.putTrigger(stored);
  subscribeTriggers(draft);
  return stored;
}

/** The triggers that run after a change of an object of the class that is made by these definitions. */
export function triggersAfter(
  defined: Pick<Defined, "get"> & { triggersFor(view: LoadedClass): readonly TriggerDefinition[] },
  path: string,
): readonly TriggerVersion[] {
  const view = defined.get(path);
  const after = view === undefined ? [] : defined.triggersFor(view).filter(({ before }) => !before);
  return after.map(({ class: of, name, modifiedAtMs }) => ({ class: of, name, atMs: modifiedAtMs }));
}

export function dropTrigger(
  draft: Draft,
  trigger: Pick<TriggerDefinition, "class" | "name">,
  expected?: Expected,
): void {
  const former = draft.triggers.get(triggerName(trigger));
  if (former === undefined)
    throw new AppError("not_found", `[NotExist] class ${trigger.class} has no trigger ${trigger.name}.`);
  requireExpected(expected, `The trigger ${triggerName(trigger)}`, triggerStamp(former));
  draft.deleteTrigger(trigger);
  subscribeTriggers(draft);
}

/**
 * Makes the subscription cover exactly the classes with triggers that run after a write, and all classes below them.
 * Removes it if there are none.
 */
export function subscribeTriggers(draft: Draft): void {
  const after = [...draft.triggers.values()].filter(({ before, disabled }) => !before && !disabled);
  const classes = [...new Set(after.map(({ class: path }) => `${path}/`))].sort();
  if (classes.length === 0) return draft.deleteSubscription(TRIGGER_SUBSCRIPTION);
  const known = draft.subscription(TRIGGER_SUBSCRIPTION);
  if (known?.classes.join() === classes.join()) return;
  draft.putSubscription({ name: TRIGGER_SUBSCRIPTION, classes, whole: true });
}

/** The triggers that run for objects of the class, in the order of their levels, then of their names. */
export function triggersOf(view: LoadedClass, defined: Defined): readonly TriggerDefinition[] {
  const all = [...defined.definitions.triggers.values()];
  const lineage = lineageOf(view, defined);
  return all
    .filter(({ class: path, disabled }) => !disabled && lineage.has(path))
    .sort((one, other) => one.level - other.level || (triggerName(one) < triggerName(other) ? -1 : 1));
}

/** The class, and those classes above it whose triggers it runs. The platform's own classes run no triggers. */
function lineageOf(view: LoadedClass, defined: Defined): ReadonlySet<string> {
  const paths = new Set<string>();
  if (view.system) return paths;
  for (let at: LoadedClass | undefined = view; at !== undefined; at = defined.get(parentPath(at.path) ?? "")) {
    paths.add(at.path);
    if (String(at.options.hints[INHERITANCE_HINT]).toLowerCase() === "false") break;
  }
  return paths;
}

function checkCount(draft: Draft, path: string): void {
  const mine = [...draft.triggers.values()].filter((trigger) => trigger.class === path).length;
  if (mine >= TRIGGERS_PER_CLASS_MAX) throw tooMany("class", "TRIGGERS_PER_CLASS_MAX", TRIGGERS_PER_CLASS_MAX);
  if (draft.triggers.size >= TRIGGERS_PER_TENANT_MAX)
    throw tooMany("tenant", "TRIGGERS_PER_TENANT_MAX", TRIGGERS_PER_TENANT_MAX);
}

function tooMany(of: string, limit: string, count: number): AppError {
  return new AppError("too_large", `[Valid] A ${of} has at most ${count} triggers.`, { details: { limit } });
}
