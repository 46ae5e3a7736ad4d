import { QUERY_PARSED_MAX_CHARACTERS, QUERY_PARSED_TEXT_MAX_CHARACTERS } from "../../../../common/limits.ts";
import { parseScript, parseScriptInSteps, type Script } from "../../../../common/mql/index.ts";
import type { MemoryShare } from "../expressions/aggregates/memory.ts";
import { inSlices, type Slices } from "./slice.ts";

/** Trees of recently run texts, because programs repeat their texts. Trees contain nothing about their callers. */
export class ParsedTexts {
  readonly #scripts = new Map<string, Script>();
  #characters = 0;

  /**
   * Like `parseScript`, in slices. `memory` takes the bytes of a long text's tree; the trees of short texts have a
   * common limit.
   */
  parsed(text: string, slices: Slices, memory?: Pick<MemoryShare, "take">): Script | Promise<Script> {
    if (text.length > QUERY_PARSED_TEXT_MAX_CHARACTERS) return inSlices(parseScriptInSteps(text), slices, memory);
    return this.#remembered(text);
  }

  #remembered(text: string): Script {
    const known = this.#scripts.get(text);
    const script = known ?? parseScript(text);
    this.#scripts.delete(text);
    this.#scripts.set(text, script);
    if (!known) this.#count(text.length);
    return script;
  }

  /** Counts a new text, and forgets the texts that were not used for longest. */
  #count(characters: number): void {
    this.#characters += characters;
    for (const oldest of this.#scripts.keys()) {
      if (this.#characters <= QUERY_PARSED_MAX_CHARACTERS) return;
      this.#scripts.delete(oldest);
      this.#characters -= oldest.length;
    }
  }

  /** Total length of the kept texts. */
  get characters(): number {
    return this.#characters;
  }
}
