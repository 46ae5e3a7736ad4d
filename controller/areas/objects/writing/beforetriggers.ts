import { AppError } from "../../../../common/errors.ts";
import type { Row, Value } from "../../../../common/value.ts";
import type { Principal, TriggerChain } from "../../permissions/index.ts";
import type { Snapshot } from "../definitions/snapshot.ts";
import type { LoadedClass } from "../definitions/views.ts";
import type { ClassView, Edit, ObjectTriggers, TriggerDefinition, TriggeredWrite, WriteBasis } from "../types.ts";
import { standing } from "./basis.ts";
import { compose, type EntityWrite } from "../values/compose.ts";
import { unsealed } from "../values/events.ts";
import { keyFromColumns, wholeId } from "../values/identity.ts";
import { checkEdits, type CheckedEdits } from "../values/rows.ts";

/** The object of a write, before and after it. */
export interface TriggeredEntity {
  readonly view: LoadedClass;
  readonly key: string;
  readonly checked: CheckedEdits;
  readonly old: EntityWrite["old"];
}

/** Basis for rows of one class. It is used instead of the current class. */
export interface GivenBasis {
  readonly path: string;
  readonly basis: WriteBasis;
}

interface BeforeTriggersOptions {
  readonly principal: Principal;
  readonly runner: ObjectTriggers;
  readonly snapshot: Snapshot;
  readonly chain: TriggerChain;
  readonly given?: GivenBasis | undefined;
}

/** The triggers that run before the writes of one call. */
export class BeforeTriggers {
  readonly chain: TriggerChain;
  readonly #of: Omit<BeforeTriggersOptions, "chain">;

  constructor({ chain, ...of }: BeforeTriggersOptions) {
    this.#of = of;
    this.chain = chain;
  }

  /** True if triggers run before writes of the class. */
  has({ path }: ClassView): boolean {
    return this.#triggersOf(path).length > 0;
  }

  /**
   * The edits after the triggers ran. `held`: keys that this write holds in the queue; a trigger may not write these
   * objects.
   */
  async entity(entity: TriggeredEntity, held: readonly string[]): Promise<CheckedEdits> {
    const { view, key, checked, old } = entity;
    const object = objectOf(entity);
    const outcome = await this.#run(
      {
        action: old === undefined ? "INSERT" : "UPDATE",
        class: view.path,
        id: wholeId(view, key),
        object,
        old: old && unsealed(view, old.row),
      },
      held,
    );
    const changes = this.#standing(view, changesOf(view, object, outcome.object));
    checkKeyKept(view, key, { before: object, after: outcome.object });
    const made = checkEdits(view, this.#of.snapshot, changes);
    const columns = new Set(made.edits.map(({ column }) => column.name));
    const types = new Set(made.links.map(({ type }) => type));
    return {
      edits: [...checked.edits.filter(({ column }) => !columns.has(column.name)), ...made.edits],
      links: [...checked.links.filter(({ type }) => !types.has(type)), ...made.links],
      ...(outcome.announced && { announced: true }),
      ...(columns.size > 0 && { computed: columns }),
    };
  }

  /** The values of a new record after the triggers ran. */
  async record(
    view: LoadedClass,
    record: { readonly id: string; readonly values: Row },
    held: readonly string[],
  ): Promise<{ readonly values: Row; readonly announced: boolean }> {
    const { id, values } = record;
    const write = {
      action: "INSERT",
      class: view.path,
      id: wholeId(view, id),
      object: values,
      old: undefined,
    } as const;
    const { object, announced } = await this.#run(write, held);
    const changed = this.#standing(view, changesOf(view, values, object));
    const merged = Object.fromEntries(changed.map(({ column, value }) => [column, value ?? null]));
    return { values: { ...values, ...merged }, announced };
  }

  /** True if the removal is to be announced. Changes that triggers make to the object have no effect. */
  async removal(
    view: ClassView,
    { id, values }: { readonly id: string; readonly values: Row },
    held: readonly string[],
  ): Promise<boolean> {
    const object = unsealed(view, values);
    const write = { action: "DELETE", class: view.path, id, object, old: object } as const;
    return (await this.#run(write, held)).announced;
  }

  /** The changes without those of columns that do not exist any more. */
  #standing(view: LoadedClass, changes: readonly Edit[]): readonly Edit[] {
    const { given } = this.#of;
    if (given?.path !== view.path) return changes;
    const left = standing(given.basis, view);
    return changes.filter(({ column }) => left(column));
  }

  #triggersOf(path: string): readonly TriggerDefinition[] {
    const { snapshot, given } = this.#of;
    if (given?.path === path) return given.basis.triggers;
    const view = snapshot.get(path);
    return view === undefined ? [] : snapshot.triggersFor(view).filter(({ before }) => before);
  }

  #run(write: TriggeredWrite, held: readonly string[]): ReturnType<ObjectTriggers["before"]> {
    const { principal, runner } = this.#of;
    const { id, steps, holds } = this.chain;
    const chain = { id, steps: steps + 1, holds: [...holds, ...held] };
    return runner.before({ ...principal, chain }, this.#triggersOf(write.class), write);
  }
}

/** The object as it would be written, with the relations that the write names. */
function objectOf({ view, key, checked, old }: TriggeredEntity): Row {
  const { edits, links } = checked;
  const { row } = compose({ view, key, timeUs: 1, edits, old, birth: old === undefined, fresh: old === undefined });
  return { ...unsealed(view, row), ...Object.fromEntries(links.map(({ type, ids }) => [type, ids])) };
}

/** Changes of a trigger to an object, as edits. */
function changesOf(view: LoadedClass, before: Row, after: Row): Edit[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .filter((name) => !isSame(before[name], after[name]))
    .map((column) => ({ column, operation: "set", value: fitting(view, column, after[column]) }));
}

/** An empty table in Lua can be a list or a map, so the column decides. */
function fitting(view: LoadedClass, name: string, value: Value | undefined): Value | undefined {
  if (!isEmpty(value)) return value;
  return view.column(name)?.type === "map" ? {} : [];
}

function isSame(one: Value | undefined, other: Value | undefined): boolean {
  if (one === other || (isNothing(one) && isNothing(other)) || (isEmpty(one) && isEmpty(other))) return true;
  if (typeof one !== "object" || typeof other !== "object" || isNothing(one) || isNothing(other)) return false;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const [mine, theirs] = [one as Row, other as Row];
  const names = Object.keys(mine);
  return names.length === Object.keys(theirs).length && names.every((name) => isSame(mine[name], theirs[name]));
}

function isNothing(value: Value | undefined): value is null | undefined {
  return value === undefined || value === null;
}

function isEmpty(value: Value | undefined): boolean {
  return typeof value === "object" && value !== null && Object.keys(value).length === 0;
}

/** The key columns of an object cannot change if its id is made of them. */
export function checkKeyKept(
  view: LoadedClass,
  key: string,
  rows: { readonly before: Row; readonly after: Row },
): void {
  if (keyFromColumns(view, rows.before) !== key || keyFromColumns(view, rows.after) === key) return;
  throw new AppError(
    "invalid",
    `[Valid] class ${view.path}: the key columns ${view.keys.join(", ")} make the id and cannot be changed.`,
  );
}
