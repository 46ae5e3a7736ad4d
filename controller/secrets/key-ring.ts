import { AppError, isAppError } from "../../common/errors.ts";
import { derive, expand, keyIdOf, openSealed, seal, type Key, type SecretBox } from "./secret-box.ts";

/** Reads the keys again from their source (`KeySource`). */
export type ReadKeys = () => Promise<readonly Uint8Array[]>;

/**
 * Creates a ring from keys of 32 bytes. It seals (encrypts) with the first key, and opens texts sealed with any key.
 */
export function secretBox(keys: readonly Uint8Array[], read?: ReadKeys): KeyRing {
  return new KeyRing(keys, read);
}

/**
 * The keys of this controller, which change while it runs. A key that was removed from the source still opens until the
 * controller ends, because texts that were sealed with it may still be stored.
 */
export class KeyRing implements SecretBox {
  readonly #read: ReadKeys | undefined;
  readonly #parts = new Map<string, Uint8Array>();
  #known: readonly Key[];
  #ids: readonly string[];
  #current: Key;

  constructor(keys: readonly Uint8Array[], read?: ReadKeys) {
    const known = expanded(keys);
    this.#read = read;
    this.#known = known;
    this.#ids = known.map(({ id }) => id);
    this.#current = known[0];
  }

  get keyId(): string {
    return this.#current.id;
  }

  /** Ids of the keys of the source, in its order, when it was last read. The first one is the key that should seal. */
  get ids(): readonly string[] {
    return this.#ids;
  }

  /** Ids of all keys that can open: first `ids`, then those that the source had before. */
  get opening(): readonly string[] {
    return this.#known.map(({ id }) => id);
  }

  seal(secret: string | Uint8Array, context: string): string {
    return seal(this.#current, secret, context);
  }

  open(sealed: string, context: string): string {
    return Buffer.from(this.openBytes(sealed, context)).toString("utf8");
  }

  openBytes(sealed: string, context: string): Uint8Array {
    return openSealed((id) => this.#named(id), sealed, context);
  }

  derive(context: string, keyId = this.keyId): Uint8Array {
    const part = this.#parts.get(partName(keyId, context));
    return part ?? derive(this.#named(keyId), context);
  }

  /**
   * Seals the same secret with the current key. Returns the text unchanged if the current key has sealed it. Tries the
   * contexts in their order, and seals for the first one that opens the text. `AppError("unavailable")` if none does.
   */
  sealAnew(sealed: string, contexts: readonly [string, ...string[]]): string {
    if (keyIdOf(sealed) === this.keyId) return sealed;
    const [context, ...others] = contexts;
    try {
      return this.seal(this.openBytes(sealed, context), context);
    } catch (error) {
      const [next, ...rest] = others;
      if (next === undefined || !isAppError(error, "unavailable")) throw error;
      return this.sealAnew(sealed, [next, ...rest]);
    }
  }

  /** Makes `derive` return these bytes for this key id and context, even if the key itself is gone. */
  keepPart(keyId: string, context: string, bytes: Uint8Array): void {
    this.#parts.set(partName(keyId, context), bytes);
  }

  /**
   * Reads the keys again from their source. Returns true if the keys or their order have changed. If the source cannot
   * be read, it throws and keeps its keys.
   */
  async reread(): Promise<boolean> {
    if (!this.#read) return false;
    const found = expanded(await this.#read());
    const ids = found.map(({ id }) => id);
    if (ids.join() === this.#ids.join()) return false;
    this.#ids = ids;
    this.#known = [...found, ...this.#known.filter(({ id }) => !ids.includes(id))];
    return true;
  }

  /**
   * Changes the key that seals to the first key of the source for which `isKnown` returns true (all controllers have
   * it). It only changes to a key that is before the current one in the source, so it never returns to an older key. If
   * the source no longer has the current key, it may change to any key of the source. Returns true if the key has
   * changed.
   */
  advance(isKnown: (id: string) => boolean): boolean {
    const own = this.#ids.indexOf(this.keyId);
    const newer = own < 0 ? this.#ids : this.#ids.slice(0, own);
    const next = newer.find(isKnown);
    if (next === undefined) return false;
    this.#current = this.#named(next);
    return true;
  }

  /**
   * Call it at the start, before anything is sealed. It chooses the first key for which `isKnown` returns true, because
   * a key that another controller does not have must not seal. Without such a key, the first key seals.
   */
  begin(isKnown: (id: string) => boolean): void {
    this.#current = this.#named(this.#ids.find(isKnown) ?? this.#current.id);
  }

  #named(id: string): Key {
    const key = this.#known.find((one) => one.id === id);
    if (key) return key;
    throw new AppError(
      "unavailable",
      `A secret was sealed with the key ${id}, which this controller does not have: add it below the first one where the keys come from.`,
    );
  }
}

function expanded(keys: readonly Uint8Array[]): readonly [Key, ...Key[]] {
  const [first, ...others] = keys.map(expand);
  if (!first) throw new AppError("invalid", "There is no key to seal secrets with.");
  return [first, ...others];
}

function partName(keyId: string, context: string): string {
  return `${keyId} ${context}`;
}
