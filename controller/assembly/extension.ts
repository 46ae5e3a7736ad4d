/** Names of the two sides of an extension point, for messages. */
export interface Sides {
  /** The service that is offered, such as `triggers of writes`. */
  readonly name: string;
  /** The service that needs it, and is made first. */
  readonly neededBy: string;
  /** The service that fills it, and is made later. */
  readonly filledBy: string;
}

/**
 * A service that an earlier part of the assembly needs and a later part makes. The earlier part gets `offered`; the
 * later one calls `fill`. A use between the two is an error that names the circle.
 */
export class ExtensionPoint<T extends object> {
  readonly #sides: Sides;
  readonly #members = new Map<string | symbol, unknown>();
  #filled: T | undefined;
  /**
   * The service, for services that are made before it. Pass it on, but read its members only after all points are
   * filled.
   */
  readonly offered: T;

  constructor(sides: Sides) {
    this.#sides = sides;
    const nothing: object = {};
    this.offered = new Proxy(nothing, { get: (_, member) => this.#member(member) }) as T;
  }

  /** Throws if it is already filled. */
  fill(service: T): void {
    if (this.#filled !== undefined) throw new Error(`${this.#told()} is filled twice.`);
    this.#filled = service;
  }

  /** Throws if it is not filled: a part of the assembly is missing. */
  requireFilled(): void {
    if (this.#filled === undefined) throw new Error(`${this.#told()} is filled by nothing.`);
  }

  /**
   * Methods must run on the service itself, because classes have private members. They are bound once, at their first
   * use.
   */
  #member(member: string | symbol): unknown {
    const known = this.#members.get(member);
    if (known !== undefined) return known;
    const { neededBy, filledBy } = this.#sides;
    if (this.#filled === undefined)
      throw new Error(`${this.#told()} is used before it is filled: ${neededBy} → ${filledBy} → ${neededBy}.`);
    const value: unknown = Reflect.get(this.#filled, member, this.#filled);
    if (typeof value !== "function") return value;
    const bound: unknown = value.bind(this.#filled);
    this.#members.set(member, bound);
    return bound;
  }

  #told(): string {
    return `The extension point "${this.#sides.name}"`;
  }
}
