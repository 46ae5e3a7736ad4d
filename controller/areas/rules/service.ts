import { AppError, isAppError } from "../../../common/errors.ts";
import { RULE_TEXT_MAX_BYTES } from "../../../common/limits.ts";
import { revisionOf, type Expected, type Revised } from "../../../common/revisions.ts";
import { listed } from "../../../common/text/listed.ts";
import { suggestion, withNearest } from "../../../common/text/nearest.ts";
import { type ClassView, type Objects, readablePaths } from "../objects/index.ts";
import { anyKey, type Entry, ownedVisibility } from "../config/index.ts";
import {
  allows,
  classAccess,
  requireAllOwnGrants,
  requireOneOf,
  requirePermission,
  type Principal,
} from "../permissions/index.ts";
import type { ScriptEngine } from "../../scripting/index.ts";
import { checkRuleText, compileRule, missingFields, missingOption, ruleClass } from "./definitions/compile.ts";
import { classNotFound, CompiledRules, presentClass } from "./definitions/compiled.ts";
import { readExtension } from "./definitions/extension.ts";
import { requireTimedRecords, targetOf, withClasses } from "./definitions/classes.ts";
import { patternsReached } from "./grok/grok.ts";
import { checkBody } from "./bodies/check.ts";
import { classOrEmpty } from "./definitions/named.ts";
import { fieldOptions, grokOptions, type NewRule } from "./definitions/new-rule.ts";
import { bodyOf, readRuleText, writeRuleText } from "./definitions/options.ts";
import { RuleStore, type RuleStoreParts, type StoredRule, type SupplementedRule, textGone } from "./store.ts";
import { digestOf } from "./definitions/supplements.ts";
import { idleTimes } from "./definitions/times.ts";
import type { Rule, Rules } from "./types.ts";
import { ruleWarnings, untilIt } from "./definitions/warnings.ts";

export interface MadeRule {
  readonly key: string;
  readonly revision: string;
}

export interface RuleListing {
  readonly key: string;
  readonly class: string;
  readonly type: string;
  readonly value: string;
  readonly revision: string;
}

export interface RuleDependencies extends Pick<RuleStoreParts, "stores" | "entries"> {
  readonly objects: Objects;
  /** Absent: bodies find no tables of `/extend`. */
  readonly tables?: RuleStoreParts["tables"];
  /** Names of the policies that need a rule, as far as the principal may see them. Absent: none is reported. */
  readonly neededBy?: (principal: Principal, rule: string) => Promise<readonly string[]>;
  /** Absent: the syntax of bodies is not checked. */
  readonly engine?: Pick<ScriptEngine, "run"> | undefined;
}

export class RuleService implements Rules {
  readonly #store: RuleStore;
  readonly #objects: Objects;
  readonly #compiled: CompiledRules;
  readonly #engine: RuleDependencies["engine"];
  readonly #neededBy: NonNullable<RuleDependencies["neededBy"]>;

  constructor(dependencies: RuleDependencies) {
    const { tables = () => Promise.resolve(undefined) } = dependencies;
    this.#store = new RuleStore({ ...dependencies, tables });
    this.#objects = dependencies.objects;
    this.#compiled = new CompiledRules(dependencies.objects);
    this.#engine = dependencies.engine;
    this.#neededBy = dependencies.neededBy ?? (() => Promise.resolve([]));
  }

  /** Drops all compiled rules, because a tenant was deleted. They are compiled again when they are used. */
  leave(): void {
    this.#compiled.clear();
  }

  async load(principal: Principal, key: string): Promise<Rule> {
    requireOneOf(principal, ["rules:write", "policies:write", "policies:run"]);
    const stored = await this.#readable(principal, key);
    return this.#compiled.of(principal, await this.#supplemented(principal, stored));
  }

  /** Compiles a text that is not stored, as if the principal had stored it. Throws the errors of `put` and `load`. */
  async given(principal: Principal, key: string, text: string): Promise<Rule> {
    requirePermission(principal, "rules:write");
    await this.check(principal, key, text);
    const stored = { key, text, by: principal.user };
    return this.#compiled.of(principal, await this.#supplemented(principal, stored));
  }

  /** Grok patterns of users that an expression uses, by name. */
  async patternsReached(principal: Principal, expression: string): Promise<Readonly<Record<string, string>>> {
    requirePermission(principal, "rules:write");
    return patternsReached([expression], await this.#store.patterns(principal.tenant));
  }

  async pinned(principal: Principal, key: string, digest: string): Promise<Rule> {
    requirePermission(principal, "rules:write");
    const rule = await this.#store.pinned(principal.tenant, key, digest);
    const { classes = {} } = rule.supplements;
    const catalog = await this.#objects.catalog(principal);
    for (const [path, { cid }] of Object.entries(classes))
      if ((catalog.get(path)?.cid ?? cid) !== cid) throw textGone(`The class ${path} is another one by now.`);
    return this.#compiled.of(principal, rule);
  }

  async forwarded(principal: Principal, rule: Rule, key: string): Promise<Rule> {
    requireOneOf(principal, ["rules:read", "rules:write"]);
    const { forwards = {}, classes } = rule.supplements;
    const found = Object.hasOwn(forwards, key) ? forwards[key] : undefined;
    if (found === undefined)
      throw new AppError("not_found", `There is no rule ${key}, or its key does not stand in the text of ${rule.key}.`);
    const supplements = {
      ...found.supplements,
      ...(found.supplements.author !== undefined && { forwards }),
      ...(classes && { classes }),
    };
    const { text } = found;
    return this.#compiled.of(principal, { key, text, supplements, digest: digestOf(text, supplements) });
  }

  async pin(principal: Principal, rule: Rule, untilMs: number): Promise<void> {
    requirePermission(principal, "rules:write");
    await this.#store.pin(principal.tenant, rule, untilMs);
  }

  /**
   * Rules whose records are stored in the class; without `path` all rules. A rule that names no class is listed with an
   * empty class. Rules of classes that the principal may not read are left out, and so are rules whose entries or texts
   * are hidden by a data rule on the class of configuration itself.
   */
  async list(principal: Principal, path?: string): Promise<readonly RuleListing[]> {
    requirePermission(principal, "rules:read");
    const rules = await this.#visible(principal);
    const seen = rules.map(listing).filter((rule) => rule.class === "" || classAccess(principal, rule.class).readable);
    return seen.filter((rule) => path === undefined || rule.class === path.replace(/\/+$/, ""));
  }

  async #condition(principal: Principal, expected: Expected | undefined) {
    return { expected, sees: await ownedVisibility(principal, this.#objects) };
  }

  async #visible(principal: Principal): Promise<readonly StoredRule[]> {
    return this.#store.list(principal, await ownedVisibility(principal, this.#objects));
  }

  /** Warning about the rules that stop when the user is removed, as far as the principal may see them. */
  async endsWith(principal: Principal, username: string): Promise<readonly string[]> {
    requirePermission(principal, "users:write");
    if (!allows(principal, "rules:read")) return [];
    const own = (await this.#visible(principal)).filter(
      ({ text, by }) => by === username && isReadable(principal, text),
    );
    if (own.length === 0) return [];
    return [`Rules stop until another user saves them: ${listed(own.map(({ key }) => key))}.`];
  }

  /**
   * Inserts or replaces a rule. Refuses a text that does not parse, or that uses unknown parsers or
   * types. A missing class or option is an error only when the rule is used.
   */
  async put(principal: Principal, key: string, text: string, expected?: Expected): Promise<Revised> {
    requirePermission(principal, "rules:write");
    const warnings = await this.check(principal, key, text);
    const revision = await this.#store.put(principal, key, { text, ...(await this.#condition(principal, expected)) });
    return { revision, warnings };
  }

  /** Checks as `put` does, with its errors and warnings, and stores nothing. */
  async check(principal: Principal, key: string, text: string): Promise<readonly string[]> {
    requirePermission(principal, "rules:write");
    checkKey(principal, key);
    if (Buffer.byteLength(text) > RULE_TEXT_MAX_BYTES) {
      throw new AppError("too_large", `A rule has at most ${RULE_TEXT_MAX_BYTES} bytes.`);
    }
    const warnings = await this.#checkText(principal, key, text);
    refuseForeign(principal, text);
    await this.#checkBody(principal, key, text);
    await this.#refuseOfOthers(principal, key, text);
    return [...warnings, ...ruleWarnings(text)];
  }

  /**
   * Removes a rule. Returns a warning if policies need it: their records wait on their hosts until the rule is stored
   * again.
   */
  async remove(principal: Principal, key: string, expected?: Expected): Promise<readonly string[]> {
    requirePermission(principal, "rules:write");
    checkKey(principal, key);
    const stored = await this.#store.find(principal.tenant, key);
    const found =
      stored !== undefined &&
      isReadable(principal, stored.text) &&
      (await this.#store.remove(principal, key, await this.#condition(principal, expected)));
    if (!found) throw new AppError("not_found", `There is no rule ${key}.`);
    await this.#store.putExtension(principal.tenant, key, "");
    const policies = await this.#neededBy(principal, key);
    if (policies.length === 0) return [];
    const until = "their records wait on their hosts until it is stored again";
    return [`The rule ${key} is removed, and policies need it: ${listed(policies)}; ${until}.`];
  }

  /** The rule's extension table as LTSV text; empty if it has none. `AppError("not_found")` if there is no rule. */
  async extension(principal: Principal, key: string): Promise<string> {
    requirePermission(principal, "rules:read");
    await this.#readable(principal, key, await ownedVisibility(principal, this.#objects));
    return this.#store.extension(principal.tenant, key);
  }

  /**
   * Replaces the rule's extension table; an empty text removes it. Batches that are pinned later use the new table.
   * `AppError("syntax")` for a text that is not LTSV, `not_found` if there is no rule.
   */
  async putExtension(principal: Principal, key: string, text: string): Promise<void> {
    requirePermission(principal, "rules:write");
    await this.#readable(principal, key);
    readExtension(text);
    await this.#store.putExtension(principal.tenant, key, text);
  }

  async #readable(principal: Principal, key: string, sees?: (entry: Entry) => boolean): Promise<StoredRule> {
    checkKey(principal, key);
    const stored = await this.#store.find(principal.tenant, key, sees);
    if (!stored || !isReadable(principal, stored.text))
      throw new AppError("not_found", `There is no rule ${key}.`, NO_RULE);
    return stored;
  }

  /** Creates or replaces the rule of a class and type. */
  async create(principal: Principal, rule: NewRule, expected?: Expected): Promise<MadeRule> {
    requirePermission(principal, "rules:write");
    requireAllOwnGrants(principal);
    const view = await presentClass(this.#objects, principal, rule.class);
    if (!classAccess(principal, view).readable) throw classNotFound(rule.class);
    const key = `${principal.ospace}/rules${view.path.slice(principal.ospace.length)}/${rule.type}`;
    const text = writeRuleText([
      ["class", view.path],
      ["parser", rule.type],
      ...(rule.type === "grok"
        ? grokOptions(rule, await this.#store.patterns(principal.tenant))
        : fieldOptions(rule, view)),
    ]);
    await this.#compileWith(principal, { key, text }, view);
    const revision = await this.#store.put(principal, key, { text, ...(await this.#condition(principal, expected)) });
    return { key, revision };
  }

  /** `AppError("denied")` if the old or the new text names a class that the principal may not read. */
  async #refuseOfOthers(principal: Principal, key: string, text: string): Promise<void> {
    const former = await this.#store.find(principal.tenant, key);
    const unreadable = [text, former?.text ?? ""].some((one) => !isReadable(principal, one));
    if (unreadable) throw new AppError("denied", `The rule ${key} is of a class that ${principal.user} may not read.`);
  }

  /** Checks the text against its class. Returns warnings about missing field names and about options without effect. */
  async #checkText(principal: Principal, key: string, text: string): Promise<readonly string[]> {
    const { supplements } = await this.#store.supplement(principal.tenant, { key, text });
    checkRuleText(text, supplements);
    const [rule, catalog] = [readRuleText(text), await this.#objects.catalog(principal)];
    requireTimedRecords(rule, catalog);
    if (missingOption(rule) !== undefined) return [];
    const path = ruleClass(text);
    const view = catalog.get(path);
    if (view === undefined) return path === "" ? [] : [noClassYet(path, readablePaths(principal, catalog))];
    const missing = missingFields(rule, view);
    if (missing === undefined)
      compiledFor(principal, view, () => compileRule(text, { ...targetOf(view), supplements }));
    return [...(missing === undefined ? [] : [untilIt(missing)]), ...idleTimes(rule, view, supplements.patterns)];
  }

  /**
   * Checks the syntax of the body. `AppError("denied")` if the caller's token has only a part of the user's rights,
   * because the rule would later run with all of them.
   */
  async #checkBody(principal: Principal, key: string, text: string): Promise<void> {
    requireAllOwnGrants(principal);
    const body = bodyOf(readRuleText(text));
    if (body !== undefined && this.#engine !== undefined) await checkBody(this.#engine, principal, { key, body });
  }

  async #compileWith({ tenant }: Principal, rule: StoredRule, view: ClassView): Promise<void> {
    const { supplements } = await this.#store.supplement(tenant, rule);
    compileRule(rule.text, { ...targetOf(view), supplements });
  }

  /** The rule with the current state of everything that it uses, and of all classes that its rows may be stored in. */
  async #supplemented(principal: Principal, stored: StoredRule): Promise<SupplementedRule> {
    const rule = await this.#store.supplement(principal.tenant, stored);
    return withClasses(rule, await this.#objects.catalog(principal));
  }
}

/** A rule may be stored before its class is made. */
function noClassYet(path: string, among: Iterable<string>): string {
  return `There is no class ${path} now${suggestion(path, among)} Until there is, records of the rule are errors.`;
}

/** Compiles a rule of the class. The error about an unknown column names the nearest that the principal may see. */
function compiledFor(principal: Principal, view: ClassView, compile: () => unknown): void {
  try {
    compile();
  } catch (error) {
    const { hidden } = classAccess(principal, view);
    const seen = view.columns.filter(({ name, sealed }) => !sealed && !hidden.has(name));
    const names = seen.map(({ name }) => name);
    throw isAppError(error, "not_found") ? withNearest(error, names) : error;
  }
}

const NO_RULE = { details: { reason: "no_rule" } };

function checkKey({ ospace }: Principal, key: string): void {
  const prefix = `${ospace}/rules/`;
  if (key.startsWith(prefix) && key.length > prefix.length && anyKey(key) === key) return;
  throw new AppError(
    "invalid",
    `A rule is named by its configuration key, such as ${prefix}access, not ${key || "nothing"}.`,
    NO_RULE,
  );
}

/** True if the text names no class, or a class that the principal may read. */
export function isReadable(principal: Principal, text: string): boolean {
  const path = classOrEmpty(text);
  return path === "" || classAccess(principal, path.replace(/\/+$/, "")).readable;
}

/** `AppError("denied")` if `--keyspace` names another tenant. */
function refuseForeign({ tenant, ospace }: Principal, text: string): void {
  const keyspace = lenient(readRuleText(text), "keyspace") ?? "";
  if (keyspace === "" || keyspace === tenant || keyspace === ospace) return;
  throw new AppError("denied", `--keyspace=${keyspace} is another tenant than ${tenant}.`);
}

function listing({ key, text, stamp }: StoredRule): RuleListing {
  const rule = readRuleText(text);
  const type = (lenient(rule, "parser") ?? "").toLowerCase();
  return { key, class: classOrEmpty(text), type, value: text, revision: revisionOf({ stamp }) };
}

function lenient(rule: ReturnType<typeof readRuleText>, name: string): string | undefined {
  return rule.options.find((option) => option.name === name)?.value;
}
