import type { ClassOption, CreateClass, Statement } from "../../../../common/mql/index.ts";
import { suggestion } from "../../../../common/text/nearest.ts";
import type { ClassCatalog } from "../../objects/index.ts";
import { classAccess, type Principal } from "../../permissions/index.ts";
import { CLASS_OPTIONS } from "./define.ts";

interface Definer {
  readonly principal: Principal;
  /** The classes before the definition. */
  readonly catalog: ClassCatalog;
}

/** Options of other stores, which exports of them have, and one that triggers read. */
const KNOWN_HINTS: readonly string[] = ["partition", "largepartition", "ckeys", "inherittriggers"];

/** Warnings about a definition that is accepted, and may not do what its author expects. */
export function definitionWarnings(statement: Statement, definer: Definer): readonly string[] {
  if (statement.kind === "createClass") return [...idleOptions(statement.options), ...sharedLabels(statement, definer)];
  if (statement.kind === "alterClass" && statement.alteration.kind === "setOptions")
    return idleOptions(statement.alteration.options);
  return [];
}

function idleOptions(options: readonly ClassOption[]): readonly string[] {
  const known = [...CLASS_OPTIONS, ...KNOWN_HINTS];
  return options
    .filter(({ name }) => !known.includes(name))
    .map(({ name }) => `${name} is no option of a class, and is only kept as a hint${suggestion(name, known)}`);
}

/**
 * A warning for each class that is made and has the last part of its path in common with one that the author may read.
 * The ids of both begin with that part, so a lookup by id alone finds objects of either.
 */
function sharedLabels({ class: { path } }: CreateClass, { principal, catalog }: Definer): readonly string[] {
  const steps = path.split("/");
  const made = steps.flatMap((_, at) => {
    const above = steps.slice(0, at + 1).join("/");
    return at > 0 && catalog.get(above) === undefined ? [above] : [];
  });
  return made.flatMap((one, at) => {
    const label = labelOf(one);
    const [first] = catalog.byLabel(label).filter((view) => classAccess(principal, view).readable);
    const other = first?.path ?? made.slice(0, at).find((earlier) => labelOf(earlier) === label);
    if (other === undefined) return [];
    return [`Ids of ${one} begin with ${label}: as those of ${other} do, so a lookup by id alone visits both classes.`];
  });
}

function labelOf(path: string): string {
  return path.slice(path.lastIndexOf("/") + 1);
}
