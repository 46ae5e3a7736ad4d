import type { Row, Value } from "../../../common/value.ts";
import type { Outcome } from "../runs/chronicle.ts";
import { seededRandom } from "../time/clock.ts";
import type { ObjectService, Edit } from "../../../controller/areas/objects/index.ts";
import type { Lane } from "./race-world.ts";

/** Single calls that controllers make of one object, each with its outcome as a chronicle knows it. */

const WORDS = ["disk", "full", "late"] as const;
const ELEMENTS = [1, 2] as const;
const KEYS = ["k1", "k2"] as const;
export const TARGETS = ["race:t1", "race:t2"] as const;
/** Objects of the same class; each history has its own. */
export const SOURCES = ["from1", "from2"] as const;

export const COLUMNS = ["a", "b", "one", "two", "s", "m", "knows"] as const;

/** Choices that follow from a seed. */
export class Dice {
  readonly next: () => number;

  constructor(seed: number) {
    this.next = seededRandom(seed).next;
  }

  of<T>(list: readonly T[]): T {
    return list[Math.floor(this.next() * list.length)]!;
  }

  some<T>(list: readonly T[]): T[] {
    return list.filter(() => this.next() < 0.5);
  }
}

/** Each piece of an object that has a last write of its own, and what a value of its column says about it. */
export function pieces(column: string, value: Value | undefined): [string, string | undefined][] {
  const has = (present: boolean): string | undefined => (present ? "there" : undefined);
  if (column === "s")
    return ELEMENTS.map((element) => [
      `s/${element}`,
      has(Array.isArray(value) && (value as readonly Value[]).includes(element)),
    ]);
  if (column === "m")
    return KEYS.map((key) => [
      `m/${key}`,
      has(value !== undefined && value !== null && Object.hasOwn(value as Row, key)),
    ]);
  if (column === "knows")
    return TARGETS.map((id) => [`knows/${id}`, has(Array.isArray(value) && (value as readonly Value[]).includes(id))]);
  return [[column, value === undefined || value === "" ? undefined : String(value as string)]];
}

/** A value for that column. The label tells the writes of a history apart. */
export function someValue(dice: Dice, column: string, label: number): Value {
  switch (column) {
    case "a":
      return label;
    case "b":
      return `b${label}`;
    case "s":
      return dice.some(ELEMENTS);
    case "m":
      return Object.fromEntries(dice.some(KEYS).map((key) => [key, label]));
    case "knows":
      return dice.some(TARGETS);
    default:
      return dice.some(WORDS).slice(0, 2).join(" ");
  }
}

/** The object that a history is about. */
export interface Subject extends Lane {
  readonly id: string;
}

export interface Step {
  readonly by: ObjectService;
  readonly name: string;
  /** The outcome to assume while the answer is unknown. */
  readonly intended: Outcome;
  run(): Promise<Outcome>;
}

/** Inserts the object with that row. */
export function insertion(by: ObjectService, { id, admin, path }: Subject, row: Row): Step {
  const writes = new Map(Object.entries(row).flatMap(([column, value]) => pieces(column, value)));
  return {
    by,
    name: `insert ${JSON.stringify(row)}`,
    intended: { kind: "insert", writes },
    run: async () => {
      await by.unrestricted.insert(admin, path, [{ id, ...row }]);
      return { kind: "insert", writes };
    },
  };
}

/** Updates the object, if it is there. */
export function updating(by: ObjectService, { id, admin }: Subject, edits: readonly Edit[]): Step {
  const writes = new Map(edits.flatMap(writtenBy));
  return {
    by,
    name: `update ${JSON.stringify(edits)}`,
    intended: { kind: "update", writes },
    run: async () =>
      (await by.unrestricted.update(admin, { id }, edits)) ? { kind: "update", writes } : { kind: "absent" },
  };
}

/** Adding and taking say something only about the elements they name. */
function writtenBy(edit: Edit): [string, string | undefined][] {
  if (edit.operation === "set") return pieces(edit.column, edit.value);
  const named = pieces(edit.column, edit.value).filter(([, present]) => present !== undefined);
  return named.map(([piece]) => [piece, edit.operation === "add" ? "there" : undefined]);
}

/** From another object, which may go to one that is not there. */
export function linking(by: ObjectService, { id, admin, path }: Subject, dice: Dice): Step {
  const source = dice.of(SOURCES);
  const knows = dice.next() < 0.75 ? [id] : [];
  const outcome = { kind: "update", writes: new Map([[source, knows.length > 0 ? "there" : undefined]]) } as const;
  return {
    by,
    name: `${source} knows ${JSON.stringify(knows)}`,
    intended: outcome,
    run: async () => {
      await by.unrestricted.insert(admin, path, [{ id: `${id}${source}`, knows }]);
      return outcome;
    },
  };
}

function someEdit(dice: Dice, label: number): Edit {
  const column = dice.of(COLUMNS);
  const collection = ["s", "m", "knows"].includes(column);
  const operation = collection ? dice.of(["set", "add", "take"] as const) : "set";
  const value = someValue(dice, column, label);
  if (!collection && dice.next() < 0.15) return { column, operation, value: undefined };
  return { column, operation, value };
}

/** Removes the object, if it is there. */
export function removal(by: ObjectService, { id, admin }: Subject): Step {
  return {
    by,
    name: "remove",
    intended: { kind: "remove" },
    run: async () => ({ kind: (await by.unrestricted.remove(admin, [{ id }])) > 0 ? "remove" : "absent" }),
  };
}

/** Reads the object. */
export function looking(by: ObjectService, { id, admin }: Subject): Step {
  return {
    by,
    name: "look",
    intended: { kind: "present" },
    run: async () => ({ kind: (await by.unrestricted.get(admin, [{ id }]))[0] === undefined ? "absent" : "present" }),
  };
}

/** Any step, by any of the services. */
export function someStep(
  dice: Dice,
  services: readonly ObjectService[],
  of: Subject & { readonly label: number },
): Step {
  const by = dice.of(services);
  const kind = dice.next();
  if (kind < 0.2)
    return insertion(
      by,
      of,
      Object.fromEntries(dice.some(COLUMNS).map((column) => [column, someValue(dice, column, of.label)])),
    );
  if (kind < 0.75)
    return updating(by, of, [someEdit(dice, of.label), ...(dice.next() < 0.3 ? [someEdit(dice, of.label + 100)] : [])]);
  return kind < 0.85 ? looking(by, of) : removal(by, of);
}
