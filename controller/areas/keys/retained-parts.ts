import { errorText } from "../../../common/errors.ts";
import type { Runtime } from "../../runtime.ts";
import { sealedUnder, type KeyRing, type SealedKind } from "../../secrets/index.ts";
import { entriesUnder } from "../../store/kv/entries.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import type { KvStore } from "../../store/kv.ts";

/**
 * Value of `keys/parts/<key id>` in the system's KvStore: for each context the secret that is derived from that key,
 * base64, sealed.
 */
type StoredParts = Readonly<Record<string, string>>;

const PARTS = "keys/parts/";

export interface KeptPartsDependencies {
  /** The system's KvStore. */
  readonly kv: KvStore;
  readonly secrets: KeyRing;
  readonly runtime: Pick<Runtime, "log">;
  /** `Area.derivations` of all areas. */
  readonly contexts: () => readonly string[];
}

/**
 * Stores the secrets that are derived from former keys, sealed by the current key. So proofs made with them can be
 * verified after the former key is removed. They take a few hundred bytes for each key and are never deleted.
 */
export class RetainedKeyParts {
  readonly #with: KeptPartsDependencies;

  constructor(dependencies: KeptPartsDependencies) {
    this.#with = dependencies;
  }

  /**
   * Stores the derived secrets of all keys that open but do not seal. Does nothing for secrets that are already stored.
   */
  async keep(): Promise<void> {
    const { kv, secrets, contexts } = this.#with;
    for (const id of secrets.opening.filter((one) => one !== secrets.keyId)) {
      const found = await kv.get(PARTS + id);
      const before = found ? decodeStored<StoredParts>(found.value) : {};
      const missing = contexts().filter((context) => before[context] === undefined);
      if (missing.length === 0) continue;
      const added = missing.map((context) => {
        const part = Buffer.from(secrets.derive(context, id)).toString("base64");
        return [context, secrets.seal(part, contextOf(id, context))];
      });
      const value = encodeJson({ ...before, ...Object.fromEntries(added) });
      // If another controller was first, it stored the same secrets.
      await kv.put(PARTS + id, value, { ifRevision: found?.revision ?? 0 });
    }
  }

  /** Loads the stored secrets: from now on the key ring derives them as if the former keys were present. */
  async load(): Promise<void> {
    const { kv, secrets, runtime } = this.#with;
    for await (const { key, value } of entriesUnder(kv, PARTS)) {
      const id = key.slice(PARTS.length);
      for (const [context, sealed] of Object.entries(decodeStored<StoredParts>(value))) {
        try {
          secrets.keepPart(id, context, Buffer.from(secrets.open(sealed, contextOf(id, context)), "base64"));
        } catch (error) {
          runtime.log.warn(
            { key: id, context, reason: errorText(error) },
            "what a former key proves is not known here",
          );
        }
      }
    }
  }

  sealed(): SealedKind {
    const { kv, secrets } = this.#with;
    return {
      name: "parts of former keys",
      installation: true,
      all: () =>
        sealedUnder<StoredParts>(kv, {
          prefix: PARTS,
          secrets,
          exchanged: (parts, key, exchange) =>
            Object.fromEntries(
              Object.entries(parts).map(([context, sealed]) => [
                context,
                exchange(sealed, contextOf(key.slice(PARTS.length), context)),
              ]),
            ),
        }),
    };
  }
}

function contextOf(id: string, context: string): string {
  return `${PARTS}${id}/${context}`;
}
