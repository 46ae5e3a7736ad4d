import { QUERY_PARSED_MAX_CHARACTERS, QUERY_PARSED_TEXT_MAX_CHARACTERS } from "../../../common/limits.ts";
import { parseScript, type Script } from "../../../common/mql/index.ts";

/** The trees of texts that were run lately: programs send the same ones again and again. Trees hold nothing of who ran them. */
export class ParsedTexts {
  readonly #scripts = new Map<string, Script>();
  #characters = 0;

  /** As `parseScript`. */
  parsed(text: string): Script {
    const known = this.#scripts.get(text);
    const script = known ?? parseScript(text);
    if (text.length > QUERY_PARSED_TEXT_MAX_CHARACTERS) return script;
    this.#scripts.delete(text);
    this.#scripts.set(text, script);
    if (!known) this.#count(text.length);
    return script;
  }

  /** Forgets what was not used for longest. */
  #count(characters: number): void {
    this.#characters += characters;
    for (const oldest of this.#scripts.keys()) {
      if (this.#characters <= QUERY_PARSED_MAX_CHARACTERS) return;
      this.#scripts.delete(oldest);
      this.#characters -= oldest.length;
    }
  }

  /** Of the texts that are kept. */
  get characters(): number {
    return this.#characters;
  }
}
