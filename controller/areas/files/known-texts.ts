import { FILE_TEXT_KEPT_MAX_CHARACTERS, FILE_TEXTS_KEPT_MAX_CHARACTERS } from "../../../common/limits.ts";

/**
 * Caches texts of recently read files by tenant and digest of the content, so that a script that runs often is not read
 * each time. When the cache is full, the text that was used longest ago is evicted.
 */
export class KnownTexts {
  readonly #texts = new Map<string, string>();
  #characters = 0;

  get(tenant: string, digest: string): string | undefined {
    const key = `${tenant}/${digest}`;
    const text = this.#texts.get(key);
    if (text === undefined) return undefined;
    this.#texts.delete(key);
    this.#texts.set(key, text);
    return text;
  }

  /** Texts longer than `FILE_TEXT_KEPT_MAX_CHARACTERS` are not cached. */
  keep(tenant: string, digest: string, text: string): void {
    const key = `${tenant}/${digest}`;
    if (text.length > FILE_TEXT_KEPT_MAX_CHARACTERS || this.#texts.has(key)) return;
    this.#texts.set(key, text);
    this.#characters += text.length;
    for (const [oldest, { length }] of this.#texts) {
      if (this.#characters <= FILE_TEXTS_KEPT_MAX_CHARACTERS) return;
      this.#texts.delete(oldest);
      this.#characters -= length;
    }
  }
}
