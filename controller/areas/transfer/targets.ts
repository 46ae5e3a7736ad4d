import { AppError } from "../../../common/errors.ts";
import { parseObjectId } from "../../../common/ids.ts";
import { EXPORT_PAGE_ROWS, IMPORT_OPEN_TARGETS_MAX } from "../../../common/limits.ts";
import type { Row, Value } from "../../../common/value.ts";
import type { ClassCatalog, ClassView, Objects } from "../objects/index.ts";
import type { Principal } from "../permissions/index.ts";
import { faultOf, type ScriptPart } from "./source.ts";

/**
 * The names of those relations of a row whose target ids can belong to several classes. Only an existing object shows
 * which class is meant. So these relations are written after all objects.
 */
export function openRelations(row: Row, view: ClassView, catalog: ClassCatalog): readonly string[] {
  const { recordColumns = [] } = view;
  return Object.keys(row).filter(
    (name) =>
      name !== "id" &&
      !view.column(name) &&
      !recordColumns.some((column) => column.name === name) &&
      idsOf(row[name] ?? null).some((id) => isOpen(id, catalog)),
  );
}

/** Tracks ids that can belong to several classes: those that a script refers to, and those that it creates. */
export class OpenTargets {
  readonly #wanted = new Map<string, ScriptPart>();
  readonly #brought = new Set<string>();

  /** Notes a row. `id` is the id of its object, if known. */
  note(
    row: Row,
    of: {
      readonly id: string | undefined;
      readonly part: ScriptPart;
      readonly view: ClassView;
      readonly catalog: ClassCatalog;
    },
  ): void {
    const { id, part, view, catalog } = of;
    if (id !== undefined && isOpen(id, catalog)) this.#brought.add(id);
    const targets = openRelations(row, view, catalog).flatMap((name) => idsOf(row[name] ?? null));
    for (const target of targets)
      if (isOpen(target, catalog) && !this.#wanted.has(target)) this.#wanted.set(target, part);
    if (this.#wanted.size + this.#brought.size <= IMPORT_OPEN_TARGETS_MAX) return;
    throw new AppError(
      "too_large",
      `[Valid] An import has at most ${IMPORT_OPEN_TARGETS_MAX} ids of labels that several classes share.`,
    );
  }

  /** A fault for each id to which the script refers, and which neither the script creates nor the principal sees. */
  async faults(objects: Pick<Objects, "visible">, principal: Principal): Promise<readonly AppError[]> {
    const open = [...this.#wanted].filter(([id]) => !this.#brought.has(id));
    const faults: AppError[] = [];
    for (let at = 0; at < open.length; at += EXPORT_PAGE_ROWS) {
      const some = open.slice(at, at + EXPORT_PAGE_ROWS);
      const found = await objects.visible.get(
        principal,
        some.map(([id]) => ({ id })),
      );
      faults.push(...some.filter((_, index) => !found[index]).map(([id, part]) => faultOf(part, missing(id))));
    }
    return faults;
  }
}

function missing(id: string): AppError {
  return new AppError("invalid", `[NotExist] ${id}: several classes have such ids, and none has this one.`);
}

function isOpen(id: string, catalog: ClassCatalog): boolean {
  return catalog.byLabel(parseObjectId(id)?.label ?? "").length > 1;
}

/** The ids of a relation. It is an id, a list of ids, or a list as JSON text. */
function idsOf(value: Value): readonly string[] {
  const given = typeof value === "string" && value.trimStart().startsWith("[") ? parsed(value) : value;
  return (Array.isArray(given) ? (given as readonly Value[]) : [given]).filter((id) => typeof id === "string");
}

function parsed(text: string): Value {
  try {
    return JSON.parse(text) as Value;
  } catch {
    return text;
  }
}
