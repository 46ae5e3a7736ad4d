import type { ConfigValueSchema } from "../../../common/api/config-schema.ts";
import { requirePermission, type Principal } from "../permissions/index.ts";
import { entryKey } from "./keys.ts";
import { visibilityOf, unknownKey, type ShownRecord } from "./rights.ts";
import { parseSchema } from "./schema.ts";
import type { ConfigDependencies, ConfigService } from "./service.ts";
import { schemaKeyOf, TypedKeys } from "./typed.ts";

/** A schema with its author, without the columns that are hidden from the principal. */
export type ShownSchema = ConfigValueSchema & { readonly key: string } & Partial<
    Pick<ShownRecord, "version" | "author" | "changed">
  >;

/**
 * Reads, sets and removes the schemas of keys and directories. Schemas are entries, so they have versions and can be
 * watched.
 */
export class ConfigSchemas {
  readonly #with: ConfigDependencies;
  readonly #config: ConfigService;

  constructor(dependencies: ConfigDependencies, config: ConfigService) {
    this.#with = dependencies;
    this.#config = config;
  }

  /**
   * The schema that applies to the key: its own, or that of the nearest directory above. `AppError("not_found")` if the
   * principal sees none.
   */
  async get(principal: Principal, text: string): Promise<ShownSchema> {
    requirePermission(principal, "config:read");
    const key = entryKey(principal.ospace, text);
    const { entries, objects, owners, runtime } = this.#with;
    const visibility = await visibilityOf(principal, { objects, owners, clock: runtime.clock });
    const found = await new TypedKeys(entries, principal).entryOf(key);
    if (found === undefined || !visibility.sees(found.entry)) throw unknownKey(schemaKeyOf(principal.ospace, key));
    const { value = "{}", version, author, changed } = visibility.shown(found.entry);
    return {
      ...parseSchema(value).rules,
      key: found.key,
      ...(version !== undefined && { version }),
      ...(author !== undefined && { author }),
      ...(changed !== undefined && { changed }),
    };
  }

  /** Inserts or replaces the schema of the key. Does not check or change existing values. */
  async set(principal: Principal, text: string, rules: ConfigValueSchema): Promise<void> {
    requirePermission(principal, "config:write");
    const key = schemaKeyOf(principal.ospace, text);
    await this.#config.set(principal, { key, value: JSON.stringify(rules) });
  }

  /** Removes the schema of exactly this key. `AppError("not_found")` when the key has no schema of its own. */
  async remove(principal: Principal, text: string): Promise<void> {
    requirePermission(principal, "config:write");
    const key = schemaKeyOf(principal.ospace, text);
    if ((await this.#config.removeEntries(principal, [key])) === 0) throw unknownKey(key);
  }
}
