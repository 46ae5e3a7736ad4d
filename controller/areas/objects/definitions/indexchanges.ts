import { AppError } from "../../../../common/errors.ts";
import { RANGE_SLOTS } from "../../../../common/limits.ts";
import {
  PSEUDO_COLUMNS,
  canBeIndexed,
  hasAutosearch,
  takesSlot,
  type ClassDefinition,
  type ColumnDefinition,
  type IndexDefinition,
  type NumberedIndex,
  type OptionsDefinition,
} from "./definition.ts";
import type { Draft } from "./draft.ts";
import { nameAmong } from "./naming.ts";

/** How indexes are added, become ready, and are dropped. */

/** `complete`: columns without any value yet. Their indexes are ready at once. */
export function newIndexes(
  draft: Draft,
  definition: ClassDefinition,
  names: readonly string[],
  complete: ReadonlySet<string> | "all",
): IndexDefinition[] {
  const known = new Set(
    [definition, ...draft.lineage(definition.path)].flatMap((of) => of.indexes.map((index) => index.column)),
  );
  const slots = new Slots(draft, definition.path);
  const named = names.map((name) => definedName(draft, definition, name));
  const wanted = [...new Set(named)].filter((name) => !known.has(name) && !PSEUDO_COLUMNS.has(name));
  return wanted.map((name) => {
    const column = requireColumn(draft, definition, name);
    if (!canBeIndexed(column.type))
      throw new AppError("invalid", `[Valid] column ${name} of type ${column.type} cannot be indexed.`);
    const state = complete === "all" || complete.has(name) ? "ready" : "write-only";
    const slot = takesSlot(column.type) ? slots.take(column.number) : undefined;
    return { column: name, state, number: draft.takeNumber(), ...(slot === undefined ? {} : { slot }) };
  });
}

/** Numeric slots. A class shares them with the classes above and below it. */
class Slots {
  readonly #used: Set<number>;
  readonly #retired: Map<number, number>;

  constructor(draft: Draft, path: string) {
    const related = [...draft.lineage(path), ...draft.below(path)];
    this.#used = new Set(related.flatMap((definition) => definition.indexes.flatMap((index) => index.slot ?? [])));
    this.#retired = new Map(
      related.flatMap((definition) =>
        (definition.retiredSlots ?? []).map(({ slot, column }) => [slot, column] as const),
      ),
    );
  }

  /** Prefers the slot that the column had before. */
  take(column: number): number | undefined {
    const free = Array.from({ length: RANGE_SLOTS }, (_, at) => at + 1).filter((slot) => !this.#used.has(slot));
    const taken =
      free.find((slot) => this.#retired.get(slot) === column) ?? free.find((slot) => !this.#retired.has(slot));
    if (taken !== undefined) this.#used.add(taken);
    return taken;
  }
}

export function requireColumn(draft: Draft, definition: ClassDefinition, name: string): ColumnDefinition {
  const column = definition.columns.find((own) => own.name === name) ?? draft.columns(definition.path).get(name);
  if (column === undefined)
    throw new AppError("not_found", `[NotExist] Field ${name} Not Exist in ${definition.path}.`, {
      details: { unknown: name },
    });
  return column;
}

/** The own or inherited column of that name in any case; the text itself if there is none. */
export function definedName(draft: Draft, definition: ClassDefinition, written: string): string {
  const own = definition.columns.map((column) => column.name);
  return nameAmong([...own, ...draft.columns(definition.path).keys()], written) ?? written;
}

export function requireOwn(own: boolean, what: string, definition: ClassDefinition): void {
  if (own) return;
  throw new AppError(
    "not_found",
    `[NotExist] ${what} is not defined by ${definition.path}; an inherited one is changed where it is defined.`,
  );
}

export function addIndex(draft: Draft, definition: ClassDefinition, name: string): void {
  const retiring = definition.indexes.find((index) => index.column === name && index.state === "retiring");
  if (retiring !== undefined)
    return draft.putClass(withIndex(definition, { ...retiring, state: "write-only", number: draft.takeNumber() }));
  const added = newIndexes(draft, definition, [name], new Set());
  if (added.length === 0) throw new AppError("conflict", `[Valid] column ${name} is indexed already.`);
  draft.putClass({ ...definition, indexes: [...definition.indexes, ...added] });
}

export function dropIndex(draft: Draft, definition: ClassDefinition, name: string): void {
  requireIndex(definition, name);
  draft.putClass(withoutIndex(draft, definition, name));
}

/** Drops the index of a column, if it has one. Its slot stays reserved for that column. */
export function withoutIndex(draft: Draft, definition: ClassDefinition, name: string): ClassDefinition {
  const dropped = definition.indexes.find((index) => index.column === name);
  if (dropped === undefined) return definition;
  const indexes = definition.indexes.filter((index) => index !== dropped);
  if (dropped.slot === undefined) return { ...definition, indexes };
  const retired = { slot: dropped.slot, column: requireColumn(draft, definition, name).number };
  const others = (definition.retiredSlots ?? []).filter(({ slot }) => slot !== retired.slot);
  return { ...definition, indexes, retiredSlots: [...others, retired] };
}

/** Queries stop using the index; writers keep it. */
export function retireIndex(draft: Draft, definition: ClassDefinition, name: string): void {
  const index = requireIndex(definition, name);
  if (index.state !== "retiring") draft.putClass(withIndex(definition, { ...index, state: "retiring" }));
}

/** The same for the words of the full text. */
export function retireWords(draft: Draft, definition: ClassDefinition): void {
  const { options } = definition;
  if (!hasAutosearch(draft.lineage(definition.path)) || options.words?.state === "retiring") return;
  draft.putClass({ ...definition, options: { ...options, words: { ...options.words, state: "retiring" } } });
}

/** The index of words after a change of options: the existing one, or a new one that lacks the existing objects. */
export function wordsOf(
  draft: Draft,
  definition: ClassDefinition,
  autosearch: boolean | undefined,
): Pick<OptionsDefinition, "words"> {
  const { autosearch: before, words } = definition.options;
  if (autosearch === undefined) return words === undefined ? {} : { words };
  if (!autosearch) return {};
  if (before && words !== undefined && words.state !== "retiring") return { words };
  return { words: { state: "write-only", number: draft.takeNumber() } };
}

/** Call when every object is in these indexes. Indexes that were dropped meanwhile are skipped. */
export function markReady(draft: Draft, cid: number, numbers: ReadonlySet<number>): void {
  const definition = draft.classOf(cid);
  if (definition === undefined) return;
  const { indexes, options } = definition;
  const filled = indexes.map((index) => readyOf(index, numbers));
  const words = options.words === undefined ? undefined : readyOf(options.words, numbers);
  if (words === options.words && filled.every((index, at) => index === indexes[at])) return;
  draft.noteClass({ ...definition, indexes: filled, options: words === undefined ? options : { ...options, words } });
}

function readyOf<T extends NumberedIndex>(index: T, numbers: ReadonlySet<number>): T {
  return index.state === "write-only" && numbers.has(index.number ?? 0) ? { ...index, state: "ready" } : index;
}

function requireIndex(definition: ClassDefinition, name: string): IndexDefinition {
  const index = definition.indexes.find((own) => own.column === name);
  requireOwn(index !== undefined, `index ${name}`, definition);
  return index!;
}

function withIndex(definition: ClassDefinition, changed: IndexDefinition): ClassDefinition {
  return {
    ...definition,
    indexes: definition.indexes.map((index) => (index.column === changed.column ? changed : index)),
  };
}
