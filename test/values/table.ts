import type { Caller } from "./calls.ts";
import { CLASS, type TestedValue, VALUES } from "./values.ts";
import { prepare, type WayIn, WAYS_IN } from "./ways-in.ts";
import { givenTo, type KeptWay, keptBy } from "./kept.ts";
import { KEPT_WAYS } from "./ways-kept.ts";
import { heldBy, type WayOut, WAYS_OUT, type Written, written } from "./ways-out.ts";

/** Outcome of a value on a way, in the words of the page. */
export type Outcome = string;

const EQUAL = "=";
const REFUSED = "refused";
const NO_FORM = "–";
/** An outcome that no page contains. `found`: the value that was found instead. */
const altered = (found: string | undefined): Outcome => `ALTERED: ${found ?? "nothing"}`;

/** A refusal must name its subject: the column, the member, or the reason why a text is invalid. */
const REASON =
  /(column|field) "?[a-z]+_|utf-8|UTF-8|column config|\w+"?( in param)? (has a lone surrogate|contains NUL)|title must be a text|value is missing|at least one exec|:\d+:\d+: /;

/** Writes values by every way and reads them by others, on one controller. */
export class ValueTable {
  readonly #caller: Caller;
  #keys = 0;

  private constructor(caller: Caller) {
    this.#caller = caller;
  }

  static async open(caller: Caller): Promise<ValueTable> {
    await prepare(caller);
    return new ValueTable(caller);
  }

  /** Writes an object by this way; returns the object if it is stored correctly. */
  async write(way: WayIn, value: TestedValue): Promise<{ readonly outcome: Outcome; readonly object?: Written }> {
    const key = `k${this.#keys++}`;
    const of = written(way.path ?? CLASS, key, value, way.shape ?? "plain");
    const reply = await way.write(this.#caller, value, key);
    if (reply === undefined) return { outcome: NO_FORM };
    const [row] = await this.#caller.rows(`select ${of.column} as c from ${of.path} where k = '${key}'`);
    const found = row === undefined ? undefined : JSON.stringify(row["c"] ?? null);
    if (!reply.isOk) return { outcome: refusal(reply.error, found === undefined || found === "null") };
    const [mark, instead] = way.marks?.[value.name] ?? [];
    if (mark !== undefined) return { outcome: found === instead ? mark : altered(found) };
    if (value.held === undefined || found !== heldBy(of)) return { outcome: altered(found) };
    return { outcome: value.mark ?? EQUAL, object: of };
  }

  async read(way: WayOut, object: Written): Promise<Outcome> {
    const found = await way.read(this.#caller, object);
    if (found === undefined) return NO_FORM;
    return found === heldBy(object) ? (object.value.mark ?? EQUAL) : altered(found);
  }

  async keep(way: KeptWay, value: TestedValue): Promise<Outcome> {
    const given = givenTo(way, value);
    if (given === undefined) return NO_FORM;
    const key = `k${this.#keys++}`;
    const reply = await way.write(this.#caller, given, key);
    if (!reply.isOk) return refusal(reply.error, true);
    const found = JSON.stringify(await way.read(this.#caller, key));
    const [mark, answer] = way.marks?.[value.name] ?? [];
    if (mark !== undefined) return found === JSON.stringify(answer) ? mark : altered(found);
    if (found !== keptBy(way, given)) return altered(found);
    return (way.form === "text" || way.form === "words" ? undefined : value.mark) ?? EQUAL;
  }
}

function refusal(error: string, isUnwritten: boolean): Outcome {
  return isUnwritten && REASON.test(error) ? REFUSED : altered(error);
}

/** The outcomes on the page, by table and row. */
export interface Tables {
  readonly in: ReadonlyMap<string, readonly Outcome[]>;
  readonly out: ReadonlyMap<string, readonly Outcome[]>;
  readonly kept: ReadonlyMap<string, readonly Outcome[]>;
}

/** Tests every way with every value. Ways out read one object of each value and shape, or with `isProduct` all. */
export async function allOutcomes(caller: Caller, { isProduct }: { readonly isProduct: boolean }): Promise<Tables> {
  const table = await ValueTable.open(caller);
  const objects: Written[] = [];
  const waysIn = new Map<string, readonly Outcome[]>();
  for (const way of WAYS_IN) {
    const outcomes: Outcome[] = [];
    for (const value of VALUES) {
      const { outcome, object } = await table.write(way, value);
      outcomes.push(outcome);
      if (object && (isProduct || !objects.some((one) => one.value === value && one.shape === object.shape)))
        objects.push(object);
    }
    waysIn.set(way.name, outcomes);
  }
  const waysOut = new Map<string, readonly Outcome[]>();
  for (const way of WAYS_OUT) {
    const outcomes: Outcome[] = [];
    for (const value of VALUES)
      outcomes.push(
        await readAll(
          table,
          way,
          objects.filter((object) => object.value === value),
        ),
      );
    waysOut.set(way.name, outcomes);
  }
  const kept = new Map<string, readonly Outcome[]>();
  for (const way of KEPT_WAYS) {
    const outcomes: Outcome[] = [];
    for (const value of VALUES) outcomes.push(await table.keep(way, value));
    kept.set(way.name, outcomes);
  }
  return { in: waysIn, out: waysOut, kept };
}

/** The common outcome of all objects that have a form there. */
async function readAll(table: ValueTable, way: WayOut, objects: readonly Written[]): Promise<Outcome> {
  const outcomes = new Set<Outcome>();
  for (const object of objects) outcomes.add(await table.read(way, object));
  outcomes.delete(NO_FORM);
  return [...outcomes].join("; ") || NO_FORM;
}
