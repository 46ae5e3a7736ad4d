import { createHash } from "node:crypto";
import { AppError } from "../../../common/errors.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import type { Stores } from "../../store/engine.ts";
import type { ConfigEntries } from "../config/index.ts";
import type { Principal } from "../permissions/index.ts";

/** A rule text as it lies in the store. */
export interface StoredRule {
  readonly key: string;
  readonly text: string;
  readonly digest: string;
}

/**
 * Rules are configuration entries, with versions as all of them. Texts that ingest has pinned lie once more under
 * `rule-text/<digest>`, because a batch that was begun with a text must be repeatable with just that text.
 */
export class RuleStore {
  readonly #stores: Stores;
  readonly #entries: ConfigEntries;

  constructor({ stores, entries }: { readonly stores: Stores; readonly entries: ConfigEntries }) {
    this.#stores = stores;
    this.#entries = entries;
  }

  async find(tenant: string, key: string): Promise<StoredRule | undefined> {
    const entry = await this.#entries.get(tenant, key);
    return entry && stored(key, entry.text ?? "");
  }

  async put({ tenant, user }: Principal, key: string, text: string): Promise<void> {
    await this.#entries.write(tenant, [key], () => () => ({ text }), { by: user });
  }

  /** False when there was none. */
  async remove({ tenant, user }: Principal, key: string): Promise<boolean> {
    let isThere = false;
    const decide = (found: unknown): "delete" => {
      isThere = found !== undefined;
      return "delete";
    };
    await this.#entries.write(tenant, [key], () => decide, { by: user });
    return isThere;
  }

  /** All rules below `/<ospace>/rules/`, in the order of their keys. */
  async list({ tenant, ospace }: Principal): Promise<readonly StoredRule[]> {
    const rules: StoredRule[] = [];
    for await (const { key, text = "" } of this.#entries.under(tenant, `${ospace}/rules/`))
      rules.push(stored(key, text));
    return rules;
  }

  async pin(tenant: string, rule: StoredRule): Promise<void> {
    const { kv } = await this.#stores.tenant(tenant);
    const key = `rule-text/${rule.digest}`;
    if (!(await kv.get(key))) await kv.put(key, encodeJson(rule.text));
  }

  async pinned(tenant: string, key: string, digest: string): Promise<StoredRule> {
    const { kv } = await this.#stores.tenant(tenant);
    const entry = await kv.get(`rule-text/${digest}`);
    if (!entry) throw new AppError("not_found", `The earlier text ${digest.slice(0, 12)} of rule ${key} is not kept.`);
    return stored(key, decodeStored<string>(entry.value));
  }
}

function stored(key: string, text: string): StoredRule {
  return { key, text, digest: createHash("sha256").update(text).digest("hex") };
}
