import { AppError } from "../../../common/errors.ts";
import { RULE_FORWARDED_RULES_MAX, RULE_PINNED_MAX_BYTES, RULE_TEXT_RENEW_MS } from "../../../common/limits.ts";
import { requireExpected, type Expected, type Stamp } from "../../../common/revisions.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import type { Stores } from "../../store/engine.ts";
import { stampOf, type ConfigEntries, type Content, type Entry } from "../config/index.ts";
import type { Principal } from "../permissions/index.ts";
import type { TableRow } from "../tables/index.ts";
import { grokExpressions } from "./definitions/compile.ts";
import { patternsReached } from "./grok/grok.ts";
import { looksUp } from "./definitions/mapping.ts";
import { readRuleText } from "./definitions/options.ts";
import { readPatterns } from "./grok/pattern-store.ts";
import { textsOf } from "./grok/patterns.ts";
import { rulesNamed, runsMore, tablesNamed } from "./definitions/named.ts";
import {
  digestOf,
  type ForwardedRule,
  isSupplemented,
  NO_SUPPLEMENTS,
  type PinnedTable,
  type Supplements,
} from "./definitions/supplements.ts";

const EXTENSIONS = "rule-extension";

/** A stored rule text. */
export interface StoredRule {
  readonly key: string;
  readonly text: string;
  /** User who stored the text. Empty or absent: the platform stored it, and the rule has the platform's rights. */
  readonly by?: string;
  readonly stamp?: Stamp | undefined;
}

export interface RuleWrite extends RuleCondition {
  readonly text: string;
}

interface RuleCondition {
  readonly expected?: Expected | undefined;
  /** A condition on an entry that does not pass is refused. */
  readonly sees: (entry: Entry) => boolean;
}

/** A rule text with all data that determines how it parses. */
export interface SupplementedRule extends StoredRule {
  readonly supplements: Supplements;
  readonly digest: string;
}

/** A pinned text, with its supplements if there are any. */
type Pinned = string | { readonly text: string; readonly supplements: Supplements };

export interface RuleStoreParts {
  readonly stores: Stores;
  readonly entries: ConfigEntries;
  /** Rows of a table of `/extend`; `undefined` if there is no such table. */
  readonly tables: (tenant: string, name: string) => Promise<readonly TableRow[] | undefined>;
}

/**
 * Stores rules as configuration entries with versions. The texts that agents have pinned are also stored under
 * `rule-text/<digest>`, because a batch must be repeatable with the text that it was pinned to.
 */
export class RuleStore {
  readonly #stores: Stores;
  readonly #entries: ConfigEntries;
  readonly #tables: RuleStoreParts["tables"];

  constructor({ stores, entries, tables }: RuleStoreParts) {
    this.#tables = tables;
    this.#stores = stores;
    this.#entries = entries;
  }

  /** `undefined` also if the entry does not pass `sees`. */
  async find(
    tenant: string,
    key: string,
    sees: (entry: Entry) => boolean = () => true,
  ): Promise<StoredRule | undefined> {
    const entry = await this.#entries.get(tenant, key);
    return entry && sees(entry) ? ruleOf(entry) : undefined;
  }

  /** Returns the revision of the stored rule. */
  async put({ tenant, user }: Principal, key: string, { text, ...condition }: RuleWrite): Promise<string> {
    const decide = (found: Entry | undefined): Content => {
      requireRule(key, found, condition);
      return { text };
    };
    const { id = "" } = await this.#entries.write(tenant, [key], () => decide, { by: user });
    return id;
  }

  /** Returns false if there was no such rule. */
  async remove({ tenant, user }: Principal, key: string, condition: RuleCondition): Promise<boolean> {
    let isThere = false;
    const decide = (found: Entry | undefined): "delete" => {
      isThere = found !== undefined;
      if (found) requireRule(key, found, condition);
      return "delete";
    };
    await this.#entries.write(tenant, [key], () => decide, { by: user });
    return isThere;
  }

  /** The rules below `/<ospace>/rules/` whose entries pass `sees`, sorted by key. */
  async list({ tenant, ospace }: Principal, sees: (entry: Entry) => boolean): Promise<readonly StoredRule[]> {
    const rules: StoredRule[] = [];
    for await (const entry of this.#entries.under(tenant, `${ospace}/rules/`))
      if (sees(entry)) rules.push(ruleOf(entry));
    return rules;
  }

  /** Adds the current state of everything that the rule uses. */
  async supplement(tenant: string, rule: StoredRule): Promise<SupplementedRule> {
    const alone = await this.supplementAlone(tenant, rule);
    const supplements = alone.author === undefined ? alone : await this.#authored(tenant, rule, alone);
    return { key: rule.key, text: rule.text, supplements, digest: digestOf(rule.text, supplements) };
  }

  /**
   * Adds all rules that may get records from this one, with their supplements. `AppError("too_large")` beyond
   * `RULE_FORWARDED_RULES_MAX` or `RULE_PINNED_MAX_BYTES`.
   */
  async #authored(tenant: string, rule: StoredRule, alone: Supplements): Promise<Supplements> {
    const forwards: Record<string, ForwardedRule> = {};
    const supplements = { ...alone, forwards };
    const waiting = [...rulesNamed(rule.text)];
    for (let key = waiting.pop(); key !== undefined; key = waiting.pop()) {
      if (key === rule.key || Object.hasOwn(forwards, key)) continue;
      const next = await this.find(tenant, key);
      if (next === undefined) continue;
      if (Object.keys(forwards).length >= RULE_FORWARDED_RULES_MAX)
        throw tooMuch(
          `The rule ${rule.key} reaches more than ${RULE_FORWARDED_RULES_MAX} others.`,
          "RULE_FORWARDED_RULES_MAX",
        );
      const own = await this.supplementAlone(tenant, next);
      forwards[key] = { text: next.text, supplements: own };
      waiting.push(...rulesNamed(next.text));
    }
    checkPinned({ ...rule, supplements });
    return supplements;
  }

  /** Supplements of the rule itself, without the rules that get records from it. */
  async supplementAlone(tenant: string, rule: StoredRule): Promise<Supplements> {
    const expressions = grokExpressions(rule.text);
    const patterns = expressions.length > 0 ? patternsReached(expressions, await this.patterns(tenant)) : {};
    const extension = looksUp(readRuleText(rule.text)) ? await this.extension(tenant, rule.key) : undefined;
    const plain = { patterns, ...(extension !== undefined && { extension }) };
    return this.#authorSupplements(tenant, rule, plain);
  }

  /**
   * Adds the author and the tables of the body. A rule with a body or `--forward` always has an author, which may be
   * empty.
   */
  async #authorSupplements(tenant: string, rule: StoredRule, plain: Supplements): Promise<Supplements> {
    const { by: author = "" } = rule;
    if (author === "" && !runsMore(rule.text)) return plain;
    const tables: Record<string, PinnedTable> = {};
    for (const name of tablesNamed(rule.text)) {
      const table = name.startsWith("/") ? await this.extension(tenant, name) : await this.#tables(tenant, name);
      if (table !== undefined && table !== "") tables[name] = table as PinnedTable;
    }
    return { ...plain, author, ...(Object.keys(tables).length > 0 && { tables }) };
  }

  /** Grok patterns of users by name. */
  async patterns(tenant: string): Promise<Readonly<Record<string, string>>> {
    const { kv } = await this.#stores.tenant(tenant);
    return textsOf((await readPatterns(kv)).patterns);
  }

  /** The extension table of a rule as LTSV text; empty if it has none. */
  async extension(tenant: string, key: string): Promise<string> {
    const { kv } = await this.#stores.tenant(tenant);
    const entry = await kv.get(EXTENSIONS + key);
    return entry ? decodeStored<string>(entry.value) : "";
  }

  async putExtension(tenant: string, key: string, text: string): Promise<void> {
    const { kv } = await this.#stores.tenant(tenant);
    if (text === "") await kv.delete(EXTENSIONS + key);
    else await kv.put(EXTENSIONS + key, encodeJson(text));
  }

  /**
   * Stores the text until `untilMs`. Does nothing if it is already stored for almost as long (`RULE_TEXT_RENEW_MS`).
   */
  async pin(
    tenant: string,
    { text, supplements, digest }: Omit<SupplementedRule, "key">,
    untilMs: number,
  ): Promise<void> {
    const { kv } = await this.#stores.tenant(tenant);
    const key = `rule-text/${digest}`;
    const kept = await kv.get(key);
    if (kept && (kept.expiresAtMs ?? Infinity) > untilMs - RULE_TEXT_RENEW_MS) return;
    const pinned: Pinned = isSupplemented(supplements) ? { text, supplements } : text;
    await kv.put(key, encodeJson(pinned), { expiresAtMs: untilMs });
  }

  async pinned(tenant: string, key: string, digest: string): Promise<SupplementedRule> {
    const { kv } = await this.#stores.tenant(tenant);
    const entry = await kv.get(`rule-text/${digest}`);
    if (!entry) throw textGone(`The earlier text ${digest.slice(0, 12)} of rule ${key} is not kept.`);
    const pinned = decodeStored<Pinned>(entry.value);
    const of = typeof pinned === "string" ? { text: pinned, supplements: NO_SUPPLEMENTS } : pinned;
    return { key, ...of, digest };
  }
}

/** `AppError("too_large")` if the text and its supplements exceed `RULE_PINNED_MAX_BYTES`. */
export function checkPinned({ key, text, supplements }: Omit<SupplementedRule, "digest">): void {
  if (Buffer.byteLength(JSON.stringify([text, supplements])) > RULE_PINNED_MAX_BYTES)
    throw tooMuch(`What the rule ${key} uses has more than ${RULE_PINNED_MAX_BYTES} bytes.`, "RULE_PINNED_MAX_BYTES");
}

/** Error for a pinned text that can no longer be used. The agent then has to pin its batch again. */
export function textGone(message: string): AppError {
  return new AppError("not_found", message, { details: { reason: "text_gone" } });
}

function tooMuch(message: string, limit: string): AppError {
  return new AppError("too_large", message, { details: { limit } });
}

/** A rule that is hidden from its caller is neither compared nor told. */
function requireRule(key: string, found: Entry | undefined, { expected, sees }: RuleCondition): void {
  if (expected !== undefined && found && !sees(found))
    throw new AppError("denied", `The rule ${key} is not among the rules that this user may change.`);
  requireExpected(expected, `The rule ${key}`, found && stampOf(found));
}

function ruleOf(entry: Entry): StoredRule {
  return { key: entry.key, text: entry.text ?? "", by: entry.by, ...stampOf(entry) };
}
