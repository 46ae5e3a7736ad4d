import { AppError } from "../../../../common/errors.ts";
import { IMPORT_FAULTS_MAX, SHEET_HEADING_MAX_CHARACTERS } from "../../../../common/limits.ts";
import { beginningOf } from "../../../../common/text/cut.ts";
import { nearestName } from "../../../../common/text/nearest.ts";
import type { ClassCatalog, ClassView } from "../../objects/index.ts";
import { classAccess, type Principal } from "../../permissions/index.ts";
import { isPseudo } from "../../query/index.ts";
import type { HeadedCell, SheetColumn, SheetRequest, SheetTarget } from "./types.ts";

const SHOWN_CHARACTERS = 80;

/**
 * The names to which headings can be mapped: the id, and those columns and edge types of the class that the principal
 * may see.
 */
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
 * Maps headings to columns: as the request says; otherwise to the column with that name or title. Upper and lower case,
 * spaces, `_` and `-` do not matter. Throws `AppError("invalid")`, which reports all faults together.
 */
export function mapHeadings(cells: readonly (HeadedCell | undefined)[], of: MappingOf): readonly SheetColumn[] {
  const headings = cells.map((cell) => cell?.text.trim() ?? "");
  const faults: string[] = [...unknownHeadings(headings, of)];
  const mapper = new HeadingMapper(of);
  const columns: SheetColumn[] = [];
  for (const [at, heading] of headings.entries()) {
    // Stop here, because searching for the nearest name is slow.
    if (faults.length > IMPORT_FAULTS_MAX) break;
    const { target, fault } = mapper.take(heading, cells[at]?.fault);
    if (fault !== undefined) faults.push(`[Valid] ${fault}`);
    columns.push({ at, heading, ...(target && { target }) });
  }
  if (faults.length === 0) faults.push(...wholeFaults(columns, of));
  if (faults.length === 0) return columns;
  throw refusal(faults);
}

function refusal(faults: readonly string[]): AppError {
  const isWhole = faults.length <= IMPORT_FAULTS_MAX;
  const told = faults.slice(0, IMPORT_FAULTS_MAX);
  const many = isWhole ? "" : `, and perhaps more than these ${IMPORT_FAULTS_MAX}`;
  return new AppError("invalid", `${told.join("\n")}\nNothing was written${many}.`, {
    details: { faults: told, ...(!isWhole && { limit: "IMPORT_FAULTS_MAX" }) },
  });
}

interface Mapped {
  readonly target?: SheetTarget | undefined;
  readonly fault?: string;
}

const HOW = 'say by columns= which column it is, or "" to leave it out';

class HeadingMapper {
  readonly #of: MappingOf;
  readonly #names: ReadonlyMap<string, SheetTarget>;
  readonly #foldedNames: ReadonlyMap<string, readonly SheetTarget[]>;
  readonly #foldedTitles: ReadonlyMap<string, readonly SheetTarget[]>;
  readonly #taken = new Set<string>();

  constructor(of: MappingOf) {
    this.#of = of;
    this.#names = new Map(of.targets.map((target) => [target.name, target]));
    this.#foldedNames = grouped(of.targets, ({ name }) => name);
    this.#foldedTitles = grouped(of.targets, ({ column }) => column?.title ?? "");
  }

  take(heading: string, cellFault: string | undefined): Mapped {
    if (cellFault !== undefined) return { fault: `heading ${shown(heading)}: ${cellFault}.` };
    if (heading === "") return {};
    if (heading.length > SHEET_HEADING_MAX_CHARACTERS)
      return { fault: `heading ${shown(heading)} has more than ${SHEET_HEADING_MAX_CHARACTERS} characters.` };
    if (this.#taken.has(heading)) return { fault: `heading ${shown(heading)} is in the heading line twice.` };
    this.#taken.add(heading);
    const { given = {} } = this.#of;
    return Object.hasOwn(given, heading) ? this.#mapped(heading, given[heading] ?? "") : this.#guessed(heading);
  }

  #mapped(heading: string, name: string): Mapped {
    const target = this.#names.get(name);
    if (target || name === "") return { target };
    const end = nearestName(name, this.#names.keys());
    const fault = `heading ${shown(heading)} is mapped to ${shown(name)}, which ${this.#of.view.path} does not have`;
    return { fault: `${fault}${end === undefined ? "." : `; did you mean ${end}?`}` };
  }

  #guessed(heading: string): Mapped {
    const exact = this.#names.get(heading);
    if (exact) return { target: exact };
    const key = folded(heading);
    const alike = this.#foldedNames.get(key) ?? this.#foldedTitles.get(key) ?? [];
    const [target, second] = alike;
    if (target && !second) return { target };
    const of = `heading ${shown(heading)}`;
    if (second) return { fault: `${of} may be ${alike.map(({ name }) => name).join(" or ")}: ${HOW}.` };
    if (isPseudo(heading.toLowerCase())) return { fault: `${of} names what the platform keeps itself: ${HOW}.` };
    const nearest = this.#foldedNames.get(nearestName(key, this.#foldedNames.keys()) ?? "")?.[0];
    const end = nearest === undefined ? "" : `; did you mean ${nearest.name}?`;
    return { fault: `${of} is no column of ${this.#of.view.path}${end} (${HOW})` };
  }
}

function grouped(
  targets: readonly SheetTarget[],
  nameOf: (target: SheetTarget) => string,
): ReadonlyMap<string, readonly SheetTarget[]> {
  const groups = new Map<string, SheetTarget[]>();
  for (const target of targets) {
    const key = folded(nameOf(target));
    if (key !== "") groups.set(key, [...(groups.get(key) ?? []), target]);
  }
  return groups;
}

function unknownHeadings(headings: readonly string[], { given = {} }: MappingOf): readonly string[] {
  const known = new Set(headings);
  return Object.keys(given)
    .filter((heading) => heading === "" || !known.has(heading))
    .slice(0, IMPORT_FAULTS_MAX + 1)
    .map((heading) => {
      const nearest = nearestName(heading, known);
      const end = nearest === undefined ? "." : `; did you mean ${shown(nearest)}?`;
      return `[Valid] columns= names the heading ${shown(heading)}, which the file does not have${end}`;
    });
}

/** Faults of the mapping as a whole. Call it when all headings are mapped. */
function wholeFaults(columns: readonly SheetColumn[], { view, targets }: MappingOf): readonly string[] {
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
  const visible = new Set(targets.map(({ name }) => name));
  for (const name of missing) {
    const key = visible.has(name)
      ? `${name}, a key of ${view.path}`
      : `a hidden key of ${view.path}: name objects by id`;
    faults.push(`[Valid] No heading stands for ${key}.`);
  }
  return faults;
}

function folded(text: string): string {
  return text
    .normalize("NFC")
    .toLowerCase()
    .replace(/[\s_-]+/g, "");
}

function shown(heading: string): string {
  return JSON.stringify(heading.length <= SHOWN_CHARACTERS ? heading : `${beginningOf(heading, SHOWN_CHARACTERS)}…`);
}
