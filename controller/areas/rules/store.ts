import { createHash } from "node:crypto";
import { AppError } from "../../../common/errors.ts";
import { entriesUnder } from "../../store/entries.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import type { KvStore } from "../../store/kv.ts";

/** A rule text as it lies in the store. */
export interface StoredRule {
  readonly key: string;
  readonly text: string;
  readonly digest: string;
}

/**
 * Rules are configuration entries: `config<key>`, so `config/matrix/rules/access`. Texts that ingest has pinned lie
 * once more under `rule-text/<digest>`, because a batch that was begun with a text must be repeatable with just that
 * text.
 */
export class RuleStore {
  readonly #kv: KvStore;

  constructor(kv: KvStore) {
    this.#kv = kv;
  }

  async find(key: string): Promise<StoredRule | undefined> {
    const entry = await this.#kv.get(configKey(key));
    return entry && stored(key, decodeStored<string>(entry.value));
  }

  async put(key: string, text: string): Promise<StoredRule> {
    await this.#kv.put(configKey(key), encodeJson(text));
    return stored(key, text);
  }

  /** False when there was none. */
  async remove(key: string): Promise<boolean> {
    const there = await this.#kv.get(configKey(key));
    if (there) await this.#kv.delete(configKey(key));
    return there !== undefined;
  }

  /** All rules below `/<ospace>/rules/`, in the order of their keys. */
  async list(ospace: string): Promise<readonly StoredRule[]> {
    const rules: StoredRule[] = [];
    const prefix = configKey(`${ospace}/rules/`);
    for await (const { key, value } of entriesUnder(this.#kv, prefix))
      rules.push(stored(key.slice("config".length), decodeStored<string>(value)));
    return rules;
  }

  async pin(rule: StoredRule): Promise<void> {
    const key = `rule-text/${rule.digest}`;
    if (!(await this.#kv.get(key))) await this.#kv.put(key, encodeJson(rule.text));
  }

  async pinned(key: string, digest: string): Promise<StoredRule> {
    const entry = await this.#kv.get(`rule-text/${digest}`);
    if (!entry) throw new AppError("not_found", `The earlier text ${digest.slice(0, 12)} of rule ${key} is not kept.`);
    return stored(key, decodeStored<string>(entry.value));
  }
}

function configKey(key: string): string {
  return `config${key}`;
}

function stored(key: string, text: string): StoredRule {
  return { key, text, digest: createHash("sha256").update(text).digest("hex") };
}
