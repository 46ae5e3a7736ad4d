import { AppError, isAppError } from "../../common/errors.ts";
import { derive, expand, keyIdOf, openSealed, seal, type Key, type SecretBox } from "./secret-box.ts";

/** Reads the keys again where they come from. */
export type ReadKeys = () => Promise<readonly Uint8Array[]>;

/** Makes a ring of keys of 32 bytes each. It seals (encrypts) with the first key, and opens what any key has sealed. */
export function secretBox(keys: readonly Uint8Array[], read?: ReadKeys): KeyRing {
  return new KeyRing(keys, read);
}

/**
 * The keys of this controller, which change while it runs. A key that is gone where the keys come from goes on to open
 * until the controller ends: what it sealed may still lie somewhere.
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

  /** Ids of the keys as they stand where they come from: the first is the one that is to seal. */
  get ids(): readonly string[] {
    return this.#ids;
  }

  /** Ids of all keys that open, those first that stand where the keys come from. */
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
   * The same secret under the key that seals now; the text itself when that one sealed it. It opens under the first of
   * the contexts that fits, and is sealed for that one.
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

  /** From now on `derive` answers this for a key that is not there any more. */
  keepPart(keyId: string, context: string, bytes: Uint8Array): void {
    this.#parts.set(partName(keyId, context), bytes);
  }

  /**
   * Reads the keys again. True when they or their order have changed. Throws as at the start, and then keeps its keys.
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
   * From now on the first key seals that `isKnown` everywhere. A key that has sealed gives way to those before it only:
   * nothing goes back to an older one. Whether another key seals now.
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
   * At the start, when nothing is sealed yet: a key that another controller does not know must not seal. The first one
   * does when there is none that all know.
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
