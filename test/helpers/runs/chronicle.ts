/** Result of an operation on one object. `undefined` for a piece without a value. */
export type Outcome =
  | { readonly kind: "insert" | "update"; readonly writes: ReadonlyMap<string, string | undefined> }
  | { readonly kind: "remove" }
  /** The object did not exist. */
  | { readonly kind: "absent" }
  | { readonly kind: "present" };

interface Operation {
  readonly name: string;
  readonly start: number;
  /** Infinity: it is unknown if or when the operation took effect. */
  end: number;
  /** The intended outcome, until the real one is known. */
  outcome: Outcome;
}

export interface Found {
  readonly alive: boolean;
  readonly found: ReadonlyMap<string, string | undefined>;
}

/**
 * The writes of one object with their times. Each final value must come from a write that was not superseded: no other
 * write of the same piece began after that one had ended.
 */
export class Chronicle {
  readonly #operations: Operation[] = [];
  #ticks = 0;

  /** Call the result with the outcome when it is known. */
  begin(name: string, intended: Outcome): (outcome: Outcome) => void {
    const operation: Operation = { name, start: ++this.#ticks, end: Infinity, outcome: intended };
    this.#operations.push(operation);
    return (outcome) => {
      operation.outcome = outcome;
      operation.end = ++this.#ticks;
    };
  }

  /** Violations of the rule. */
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

  /** Values that operations with an unknown outcome intended to write. */
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
    // The object did not exist at the beginning.
    if (value === undefined && !overtaken(0)) return true;
    return wrote.some(({ outcome, end }) => written(outcome).value === value && !overtaken(end));
  }

  /** Returns true if the operation reports an absent object that certainly existed, or the reverse. */
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

/** A read that found no object proves an earlier removal: everything before it must not return. */
const existenceOf: Reading = ({ kind }) => ({
  wrote: kind !== "update" && kind !== "present",
  value: kind === "insert" ? "there" : undefined,
});

function pieceOf(outcome: Outcome, piece: string): ReturnType<Reading> {
  if (outcome.kind === "remove" || outcome.kind === "absent") return { wrote: true, value: undefined };
  if (outcome.kind === "present") return { wrote: false, value: undefined };
  return { wrote: outcome.writes.has(piece), value: outcome.writes.get(piece) };
}
