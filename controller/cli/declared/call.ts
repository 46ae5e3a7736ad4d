import { UsageError } from "./usage.ts";
import type { Shell } from "./shell.ts";

/** Values of arguments and options by name; a list for those that may have several, `true` for those without a value. */
export type Words = Readonly<Record<string, string | readonly string[] | true | undefined>>;

/** One use of a command. */
export class Call {
  readonly shell: Shell;
  readonly #words: Words;

  constructor(words: Words, shell: Shell) {
    this.#words = words;
    this.shell = shell;
  }

  /** The same use with another shell. */
  at(shell: Shell): Call {
    return new Call(this.#words, shell);
  }

  /** An argument or option that is there, because it is required or has a default. */
  text(name: string): string {
    const value = this.optional(name);
    if (value === undefined) throw new UsageError(`${name} is missing.`);
    return value;
  }

  optional(name: string): string | undefined {
    const value = this.#words[name];
    return typeof value === "string" ? value : undefined;
  }

  /** All values; none if it was not given. */
  list(name: string): readonly string[] {
    const value = this.#words[name];
    if (Array.isArray(value)) return value as readonly string[];
    return typeof value === "string" ? [value] : [];
  }

  is(name: string): boolean {
    return this.#words[name] === true;
  }

  /** A whole number; `undefined` if the option was not given. */
  number(name: string, { min = 1, max = Number.MAX_SAFE_INTEGER }: Bounds = {}): number | undefined {
    const text = this.optional(name);
    if (text === undefined) return undefined;
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= min && value <= max) return value;
    const range = max === Number.MAX_SAFE_INTEGER ? `from ${min}` : `from ${min} up to ${max}`;
    throw new UsageError(`--${name} takes a whole number ${range}, not ${text}.`);
  }
}

interface Bounds {
  readonly min?: number;
  readonly max?: number;
}
