import type { ScriptLanguage } from "../../types.ts";

/** The same small scripts in each language. `IN` and `OUT` are global variables. */
export interface LanguageTexts {
  readonly language: ScriptLanguage;
  /** `OUT = IN`. */
  readonly echo: string;
  /** Sets the global `leak`. Returns whether it, or a change of the library, existed before. */
  readonly leak: string;
  /** `OUT = host.add(IN[0], IN[1])`. */
  readonly add: string;
  /** Calls `host.refuse()` and does not catch its error, on line 2. */
  readonly refused: string;
  /** Calls `host.refuse()`, catches the error, returns its message. */
  readonly caught: string;
  /** `OUT = host.nested(IN)`. */
  readonly nested: string;
  /** Calls `host.wait()` and repeats it when it fails. */
  readonly waiting: string;
  /** Calls `host.wait()` and then, whether it fails or not, `host.add(1, 1)`; `OUT = "done"`. */
  readonly goesOn: string;
  /** Throw the same error as the engine at the deadline. */
  readonly pretending: readonly string[];
  /** Uses an undefined name, on line 3. */
  readonly mistake: string;
  /** Has a syntax error on line 2. */
  readonly unparsable: string;
  /** Scripts that never end. */
  readonly endless: readonly string[];
  /** Computes for minutes without a point at which it can be stopped. */
  readonly stuck: string;
  /** Scripts that exhaust the memory. */
  readonly greedy: readonly string[];
  /** Returns a text of `IN` characters. */
  readonly long: string;
  /** Returns `IN` nested lists. */
  readonly deep: string;
  /** Returns a list of `IN` entries. */
  readonly many: string;
  /** Calls `host.add` with such a list, catches its error and returns the message. */
  readonly handing: string;
  /** Throws a text of `IN` characters. */
  readonly shouting: string;
  /** Calls `host.add(1, 1)` `IN` times. */
  readonly calls: string;
  /**
   * By `IN`: throws for "throw", never ends for "endless", exhausts the memory for "greedy", calls `host.refuse()` for
   * "refused"; otherwise `OUT = IN`.
   */
  readonly asTold: string;
}
