import { AppError, isAppError } from "../../../common/errors.ts";
import { CONFIG_KEY_MAX_BYTES, CONFIG_SCHEMAS_PRELOADED_MAX } from "../../../common/limits.ts";
import { beginningOf } from "../../../common/text/cut.ts";
import type { Principal } from "../permissions/index.ts";
import type { ConfigEntries } from "./entries.ts";
import { entryKey, parentOf } from "./keys.ts";
import { MASK, type ConfigOwner } from "./rights.ts";
import { brokenRule, parseSchema, type CheckedSchema } from "./schema.ts";
import type { Entry } from "./stored.ts";
import type { Wanted } from "./values.ts";

/** Maximum number of characters of a bound in an error message. */
const BOUND_SHOWN_CHARACTERS = 200;

/**
 * Prefix of schemas, without the ospace. The schema of `/<ospace>/etc/x` is the entry `/<ospace>/config-schemas/etc/x`.
 */
const SCHEMAS = "/config-schemas";

/** Schemas are entries of configuration. This owner refuses every entry below `SCHEMAS` that is not a valid schema. */
export const schemaOwner: ConfigOwner = {
  prefix: SCHEMAS,
  permissions: { read: "config:read", write: "config:write" },
  sees: () => true,
  check(_principal, _key, text) {
    parseSchema(text);
    return Promise.resolve([]);
  },
};

/** Key of the schema of a key or a directory. `AppError("invalid")` if the key is that of a schema. */
export function schemaKeyOf(ospace: string, text: string): string {
  const key = entryKey(ospace, text);
  if (isSchemaKey(ospace, key))
    throw new AppError("invalid", `What lies below ${ospace}${SCHEMAS} is a schema itself.`);
  return entryKey(ospace, ospace + SCHEMAS + key.slice(ospace.length));
}

function isSchemaKey(ospace: string, key: string): boolean {
  return `${key}/`.startsWith(`${ospace}${SCHEMAS}/`);
}

/** A schema and the key for which it was set. */
interface Holding extends CheckedSchema {
  readonly key: string;
}

/** The schemas that apply to a tenant's keys. Each schema is read at most once, so use a new object for each call. */
export class TypedKeys {
  readonly #entries: ConfigEntries;
  readonly #principal: Pick<Principal, "tenant" | "ospace">;
  readonly #read = new Map<string, Promise<Entry | undefined>>();
  #areAllRead = false;

  constructor(entries: ConfigEntries, principal: Pick<Principal, "tenant" | "ospace">) {
    this.#entries = entries;
    this.#principal = principal;
  }

  /**
   * Loads all schemas, for a call that checks many keys. If there are more than `CONFIG_SCHEMAS_PRELOADED_MAX`, loads
   * none: each schema is then read when it is needed.
   */
  async preload(): Promise<void> {
    const { tenant, ospace } = this.#principal;
    const all: Entry[] = [];
    for await (const entry of this.#entries.under(tenant, `${ospace}${SCHEMAS}/`))
      if (all.push(entry) > CONFIG_SCHEMAS_PRELOADED_MAX) return;
    for (const entry of all) this.#read.set(entry.key, Promise.resolve(entry));
    this.#areAllRead = true;
  }

  /**
   * The schema that applies to the key: its own, or that of the nearest directory above. `key` of the result is the one
   * for which it was set. `undefined` if no schema applies.
   */
  async entryOf(key: string): Promise<{ readonly key: string; readonly entry: Entry } | undefined> {
    const { ospace } = this.#principal;
    if (isSchemaKey(ospace, key)) return undefined;
    const keys: string[] = [];
    for (let at = key; at !== ospace; at = parentOf(at)) keys.push(at);
    // Start all reads at once, so that together they take one round trip to the store.
    const found = await Promise.all(keys.map((one) => this.#schema(ospace + SCHEMAS + one.slice(ospace.length))));
    const place = found.findIndex((entry) => entry !== undefined);
    const [holding, entry] = [keys[place], found[place]];
    return holding !== undefined && entry ? { key: holding, entry } : undefined;
  }

  async of(key: string): Promise<Holding | undefined> {
    const found = await this.entryOf(key);
    if (found === undefined) return undefined;
    try {
      return { key: found.key, ...parseSchema(found.entry.text ?? "") };
    } catch (error) {
      // Older versions could store entries below `SCHEMAS` that are not schemas.
      if (!isAppError(error)) throw error;
      throw new AppError("invalid", `The schema ${found.entry.key} holds for ${key}, and is none: ${error.message}`);
    }
  }

  #schema(key: string): Promise<Entry | undefined> {
    const known = this.#read.get(key);
    if (known) return known;
    const isNone = this.#areAllRead || Buffer.byteLength(key) > CONFIG_KEY_MAX_BYTES;
    const read = isNone ? Promise.resolve(undefined) : this.#entries.get(this.#principal.tenant, key);
    if (!isNone) this.#read.set(key, read);
    return read;
  }
}

/**
 * The value as its schema requires it: secret if the schema says so. `AppError("invalid")` names the key and the rule,
 * but never the value. If the value is the mask, the stored secret stays; it was checked when it was set.
 */
export function conforming(schema: Holding | undefined, wanted: Wanted, found: Entry | undefined): Wanted {
  if (schema === undefined) return wanted;
  const { key, value } = wanted;
  if (schema.rules.secret && wanted.secret === false) throw breaks(key, schema, "secret");
  const typed = schema.rules.secret ? { ...wanted, secret: true } : wanted;
  if (value === MASK && found?.sealed !== undefined && typed.secret !== false) return typed;
  const rule = brokenRule(schema, value);
  if (rule !== undefined) throw breaks(key, schema, rule);
  return typed;
}

function breaks(key: string, schema: Holding, rule: keyof CheckedSchema["rules"]): AppError {
  const bound = beginningOf(JSON.stringify(schema.rules[rule]), BOUND_SHOWN_CHARACTERS);
  return new AppError("invalid", `${key} breaks the rule ${rule} (${bound}) of the schema of ${schema.key}.`, {
    details: { key, schema: schema.key, rule },
  });
}
