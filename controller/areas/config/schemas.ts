import type { ConfigValueSchema } from "../../../common/api/config-schema.ts";
import { requirePermission, type Principal } from "../permissions/index.ts";
import { entryKey } from "./keys.ts";
import { sightOf, unknownKey, type ShownRecord } from "./rights.ts";
import { parseSchema } from "./schema.ts";
import type { ConfigDependencies, ConfigService } from "./service.ts";
import { schemaKeyOf, TypedKeys } from "./typed.ts";

/** A schema with who made it, without what is hidden from the principal. */
export type ShownSchema = ConfigValueSchema & { readonly key: string } & Partial<
    Pick<ShownRecord, "version" | "author" | "changed">
  >;

/** Schemas of keys and directories: read, made and removed as the entries they are, with versions and watchers. */
export class ConfigSchemas {
  readonly #with: ConfigDependencies;
  readonly #config: ConfigService;

  constructor(dependencies: ConfigDependencies, config: ConfigService) {
    this.#with = dependencies;
    this.#config = config;
  }

  /** What holds for the key: its own schema, or that of the nearest directory above. `AppError("not_found")`: none. */
  async get(principal: Principal, text: string): Promise<ShownSchema> {
    requirePermission(principal, "config:read");
    const key = entryKey(principal.ospace, text);
    const { entries, objects, owners, runtime } = this.#with;
    const sight = await sightOf(principal, { objects, owners, clock: runtime.clock });
    const found = await new TypedKeys(entries, principal).entryOf(key);
    if (found === undefined || !sight.sees(found.entry)) throw unknownKey(schemaKeyOf(principal.ospace, key));
    const { value = "{}", version, author, changed } = sight.shown(found.entry);
    return {
      ...parseSchema(value).rules,
      key: found.key,
      ...(version !== undefined && { version }),
      ...(author !== undefined && { author }),
      ...(changed !== undefined && { changed }),
    };
  }

  /** Inserts or replaces. Values that are there already stay as they are. */
  async set(principal: Principal, text: string, rules: ConfigValueSchema): Promise<void> {
    requirePermission(principal, "config:write");
    const key = schemaKeyOf(principal.ospace, text);
    await this.#config.set(principal, { key, value: JSON.stringify(rules) });
  }

  /** Of just this key. `AppError("not_found")` when it has none of its own. */
  async remove(principal: Principal, text: string): Promise<void> {
    requirePermission(principal, "config:write");
    const key = schemaKeyOf(principal.ospace, text);
    if ((await this.#config.removeEntries(principal, [key])) === 0) throw unknownKey(key);
  }
}
