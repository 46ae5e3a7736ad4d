/** What an operation on one object answered. Absent pieces are `undefined`. */
export type Outcome =
  | { readonly kind: "insert" | "update"; readonly writes: ReadonlyMap<string, string | undefined> }
  | { readonly kind: "remove" }
  /** There was no such object. */
  | { readonly kind: "absent" }
  | { readonly kind: "present" };

interface Operation {
  readonly name: string;
  readonly start: number;
  /** Infinity: whether or when it took effect is unknown. */
  end: number;
  /** As intended, until it is known. */
  outcome: Outcome;
}

export interface Found {
  readonly alive: boolean;
  readonly found: ReadonlyMap<string, string | undefined>;
}

/**
 * The writes of one object, from when to when. What is found in the end must be a write that was not overtaken: no
 * other write of the same piece began after it had ended.
 */
export class Chronicle {
  readonly #operations: Operation[] = [];
  #ticks = 0;

  /** The answer is to be told the outcome, when it is known. */
  begin(name: string, intended: Outcome): (outcome: Outcome) => void {
    const operation: Operation = { name, start: ++this.#ticks, end: Infinity, outcome: intended };
    this.#operations.push(operation);
    return (outcome) => {
      operation.outcome = outcome;
      operation.end = ++this.#ticks;
    };
  }

  /** Everything that is not as it must be. */
  complaints({ alive, found }: Found): string[] {
    const existence = this.#explained(alive ? "there" : undefined, existenceOf)
      ? []
      : [`the object is ${alive ? "there" : "not there"}`];
    const answers = this.#operations
      .filter((operation) => this.#isImpossible(operation))
      .map((operation) => `the answer of ${operation.name}`);
    const pieces = !alive
      ? []
      : [...found].filter(([piece, value]) => !this.#explained(value, (outcome) => pieceOf(outcome, piece)));
    return [...existence, ...answers, ...pieces.map(([piece, value]) => `${piece} is ${value ?? "not there"}`)];
  }

  /** What operations of unknown outcome wanted to write. */
  unanswered(): string[] {
    const open = this.#operations.filter(({ end }) => end === Infinity);
    return open.flatMap(({ outcome }) =>
      "writes" in outcome ? [...outcome.writes.values()].filter((value) => value !== undefined) : [],
    );
  }

  text(): string {
    return this.#operations
      .map(({ name, start, end, outcome }) => `${start}–${end}: ${name} → ${end === Infinity ? "?" : outcome.kind}`)
      .join("\n");
  }

  #explained(value: string | undefined, written: Reading): boolean {
    const wrote = this.#operations.filter(({ outcome }) => written(outcome).wrote);
    const overtaken = (end: number): boolean => wrote.some((other) => other.end < Infinity && other.start > end);
    // Nothing was there in the beginning.
    if (value === undefined && !overtaken(0)) return true;
    return wrote.some(({ outcome, end }) => written(outcome).value === value && !overtaken(end));
  }

  /** "There is none" while one was certainly there, or the other way round. */
  #isImpossible(operation: Operation): boolean {
    const { outcome, start, end } = operation;
    if (outcome.kind === "insert" || end === Infinity) return false;
    const others = this.#operations.filter((other) => other !== operation);
    const inserts = others.filter((other) => other.outcome.kind === "insert");
    if (outcome.kind !== "absent") return !inserts.some((insert) => insert.start < end);
    const removals = others.filter((other) => other.outcome.kind === "remove");
    const certain = inserts.filter((insert) => insert.end < start);
    return certain.some((insert) => !removals.some((removal) => removal.end > insert.start && removal.start < end));
  }
}

type Reading = (outcome: Outcome) => { readonly wrote: boolean; readonly value: string | undefined };

/** A read that found none proves a removal before it: what was there until then must not come back. */
const existenceOf: Reading = ({ kind }) => ({
  wrote: kind !== "update" && kind !== "present",
  value: kind === "insert" ? "there" : undefined,
});

function pieceOf(outcome: Outcome, piece: string): ReturnType<Reading> {
  if (outcome.kind === "remove" || outcome.kind === "absent") return { wrote: true, value: undefined };
  if (outcome.kind === "present") return { wrote: false, value: undefined };
  return { wrote: outcome.writes.has(piece), value: outcome.writes.get(piece) };
}
