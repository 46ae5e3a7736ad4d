import { RE2JS } from "re2js";
import { PATTERN_BACKTRACKING_MAX_CHARACTERS } from "../../../common/limits.ts";

/** Work of regular expressions while some code ran. */
export interface Searches {
  /** Number of characters in all searches. */
  readonly characters: number;
  /** Sources of the expressions that V8's backtracking engine ran on a text that is too long for it. */
  readonly backtracking: readonly string[];
}

/**
 * Counts the characters searched by the regular expressions, of both engines, that are created in the work. A linear
 * engine reads each character of a search once for each of its instructions, so a small sum means a short time on any
 * machine.
 */
export function searchesOf(work: () => void): Searches {
  let characters = 0;
  const backtracking = new Set<string>();
  const { exec } = RegExp.prototype;
  const { test, matcher } = RE2JS.prototype;
  const { RegExp: Expression } = globalThis;
  const linear = new WeakSet<RegExp>();
  // The flag of the linear engine is not among the flags that an expression shows.
  globalThis.RegExp = class extends Expression {
    constructor(source: string | RegExp, flags?: string) {
      super(source, flags);
      if (flags?.includes("l")) linear.add(this);
    }
  } as RegExpConstructor;
  RegExp.prototype.exec = function (text) {
    const length = text.length - this.lastIndex;
    characters += length;
    if (!linear.has(this) && length > PATTERN_BACKTRACKING_MAX_CHARACTERS) backtracking.add(this.source);
    return exec.call(this, text);
  };
  RE2JS.prototype.test = function (text) {
    characters += String(text).length;
    return test.call(this, text);
  };
  RE2JS.prototype.matcher = function (text) {
    characters += String(text).length;
    return matcher.call(this, text);
  };
  try {
    work();
  } finally {
    globalThis.RegExp = Expression;
    RegExp.prototype.exec = exec;
    Object.assign(RE2JS.prototype, { test, matcher });
  }
  return { characters, backtracking: [...backtracking] };
}
