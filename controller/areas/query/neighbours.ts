/** Groups of connected names. A connection has no direction. */
export class Neighbours {
  readonly #of = new Map<string, Set<string>>();

  add(name: string): void {
    this.#neighboursOf(name);
  }

  join(one: string, other: string): void {
    const [ofOne, ofOther] = [this.#neighboursOf(one), this.#neighboursOf(other)];
    if (one === other) return;
    ofOne.add(other);
    ofOther.add(one);
  }

  /** The names with at most one neighbour, sorted. */
  ends(): readonly string[] {
    return [...this.#of].flatMap(([name, { size }]) => (size <= 1 ? [name] : [])).sort();
  }

  /** The groups, each sorted. The largest comes first; groups of equal size are in the order of their first names. */
  groups(): readonly (readonly string[])[] {
    const seen = new Set<string>();
    const groups = [...this.#of.keys()].sort().flatMap((name) => (seen.has(name) ? [] : [this.#groupOf(name, seen)]));
    return groups.sort((one, other) => other.length - one.length);
  }

  #groupOf(first: string, seen: Set<string>): readonly string[] {
    const group = [first];
    seen.add(first);
    for (const name of group)
      for (const other of this.#neighboursOf(name)) {
        if (seen.has(other)) continue;
        seen.add(other);
        group.push(other);
      }
    return group.sort();
  }

  #neighboursOf(name: string): Set<string> {
    const known = this.#of.get(name) ?? new Set<string>();
    this.#of.set(name, known);
    return known;
  }
}
