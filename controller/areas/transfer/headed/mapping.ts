import { AppError } from "../../../../common/errors.ts";
import { IMPORT_FAULTS_MAX } from "../../../../common/limits.ts";
import { meant, nearestName } from "../../../../common/text/nearest.ts";
import type { ClassCatalog, ClassView } from "../../objects/index.ts";
import { classAccess, type Principal } from "../../permissions/index.ts";
import { isPseudo } from "../../query/index.ts";
import type { HeadedCell, SheetColumn, SheetRequest, SheetTarget } from "./types.ts";

/** What the values of an object of the class can be written to, as the principal sees it. */
export function targetsOf(view: ClassView, principal: Principal, catalog: ClassCatalog): readonly SheetTarget[] {
  const { hidden } = classAccess(principal, view);
  const columns = view.columns.filter(({ name, sealed }) => !sealed && !hidden.has(name));
  const edgeTypes = view.kind === "record" ? [] : catalog.edgeTypes().filter(({ name }) => !view.column(name));
  return [
    ...columns.map((column) => ({ name: column.name, column })),
    { name: "id" },
    ...edgeTypes.map(({ name }) => ({ name })),
  ];
}

export interface MappingOf {
  readonly view: ClassView;
  readonly targets: readonly SheetTarget[];
  readonly given: SheetRequest["columns"];
}

/**
 * Which heading stands for which column: as the request says, else the column that has its name, or its title, without
 * regard to case, spaces, `_` and `-`. `AppError("invalid")` tells all that is wrong together.
 */
export function mapHeadings(cells: readonly (HeadedCell | undefined)[], of: MappingOf): readonly SheetColumn[] {
  const headings = cells.map((cell) => cell?.text.trim() ?? "");
  const faults = [...cells.flatMap((cell) => cell?.fault ?? []), ...unknownHeadings(headings, of)];
  const columns = headings.map((heading, at): SheetColumn => {
    try {
      const target = headings.indexOf(heading) === at ? targetOf(heading, of) : doubled(heading);
      return { at, heading, ...(target && { target }) };
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      faults.push(error.message);
      return { at, heading };
    }
  });
  if (faults.length === 0) faults.push(...wholeFaults(columns, of.view));
  if (faults.length === 0) return columns;
  const isWhole = faults.length <= IMPORT_FAULTS_MAX;
  const told = faults.slice(0, IMPORT_FAULTS_MAX);
  const many = isWhole ? "" : `, and more than these ${IMPORT_FAULTS_MAX}`;
  throw new AppError("invalid", `${told.join("\n")}\nNothing was written${many}.`, {
    details: { faults: told, ...(!isWhole && { limit: "IMPORT_FAULTS_MAX" }) },
  });
}

function targetOf(heading: string, { view, targets, given = {} }: MappingOf): SheetTarget | undefined {
  if (heading === "") return undefined;
  if (Object.hasOwn(given, heading)) return mappedTarget(heading, given[heading] ?? "", { view, targets });
  const names = targets.map(({ name }) => name);
  const exact = targets.find(({ name }) => name === heading);
  if (exact) return exact;
  const byName = targets.filter(({ name }) => folded(name) === folded(heading));
  const alike =
    byName.length > 0 ? byName : targets.filter(({ column }) => folded(column?.title ?? "") === folded(heading));
  const [found, second] = alike;
  if (found && !second) return found;
  const how = `say by columns= which column it is, or "" to leave it out`;
  if (second) throw invalid(`heading ${shown(heading)} may be ${alike.map(({ name }) => name).join(" or ")}: ${how}`);
  if (isPseudo(heading.toLowerCase())) throw invalid(`heading ${shown(heading)}: the platform keeps it itself: ${how}`);
  const nearest = nearestName(folded(heading), names.map(folded));
  const name = names.find((one) => folded(one) === nearest);
  const near = name === undefined ? "" : `; did you mean ${name}?`;
  throw invalid(`heading ${shown(heading)} is no column of ${view.path}${near} (${how})`);
}

function mappedTarget(
  heading: string,
  name: string,
  { view, targets }: Pick<MappingOf, "view" | "targets">,
): SheetTarget | undefined {
  if (name === "") return undefined;
  const target = targets.find((one) => one.name === name);
  if (target) return target;
  const end = meant(
    name,
    targets.map((one) => one.name),
  );
  throw invalid(`heading ${shown(heading)} is mapped to ${name}, which ${view.path} does not have${end}`);
}

function doubled(heading: string): SheetTarget | undefined {
  if (heading === "") return undefined;
  throw invalid(`heading ${shown(heading)} stands there twice`);
}

function unknownHeadings(headings: readonly string[], { given = {} }: MappingOf): readonly string[] {
  return Object.keys(given)
    .filter((heading) => !headings.includes(heading) || heading === "")
    .map(
      (heading) =>
        `[Valid] columns= names the heading ${shown(heading)}, which the file does not have${meant(heading, headings)}`,
    );
}

/** What is wrong with all of a mapping whose headings are known. */
function wholeFaults(columns: readonly SheetColumn[], view: ClassView): readonly string[] {
  const used = new Map<string, string>();
  const faults: string[] = [];
  for (const { heading, target } of columns) {
    if (!target) continue;
    const other = used.get(target.name);
    if (other !== undefined)
      faults.push(`[Valid] headings ${shown(other)} and ${shown(heading)} both stand for ${target.name}.`);
    used.set(target.name, heading);
  }
  if (used.size === 0) faults.push("[Valid] No heading stands for a column.");
  const isKeyed = view.kind !== "record" && view.options.keyMode !== "uuid" && !used.has("id");
  const missing = isKeyed ? view.keys.filter((name) => !used.has(name)) : [];
  faults.push(...missing.map((name) => `[Valid] No heading stands for ${name}, a key of ${view.path}.`));
  return faults;
}

function folded(text: string): string {
  return text
    .normalize("NFC")
    .toLowerCase()
    .replace(/[\s_-]+/g, "");
}

function shown(heading: string): string {
  return JSON.stringify(heading);
}

function invalid(reason: string): AppError {
  return new AppError("invalid", `[Valid] ${reason}${/[.?)]$/.test(reason) ? "" : "."}`);
}
