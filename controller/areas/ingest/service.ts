import { AppError } from "../../../common/errors.ts";
import {
  INGEST_FAULT_MAX_CHARACTERS,
  INGEST_RULES_PER_BATCH_MAX,
  RULE_CACHE_MAX_ENTRIES,
  RULE_TEXT_KEPT_MS,
  RULE_TEXT_RENEW_MS,
} from "../../../common/limits.ts";
import { beginningOf } from "../../../common/text/cut.ts";
import type { Ask, Batch, Entry, PinnedRule, Told } from "../../../proto/gen/agent/v1/agent.ts";
import type { Runtime } from "../../runtime.ts";
import type { SecretBox } from "../../secrets/index.ts";
import type { Stores } from "../../store/engine.ts";
import type { EntrySink, EntrySource } from "../hosts/index.ts";
import { systemPrincipal, type Principal } from "../permissions/index.ts";
import { type Rule, type Rules, withZones } from "../rules/index.ts";
import { hasRecords, policyNames, ruleKeys, writeTimes } from "./batches.ts";
import { Hints } from "./hints.ts";
import { Pins, pinRefused } from "./pins.ts";
import type { RecordWriter } from "./records.ts";
import type { SentPolicies } from "./sent-policies.ts";
import type { PreparedBatch, CommandEntrySink } from "./types.ts";

interface Dependencies {
  readonly stores: Stores;
  readonly runtime: Pick<Runtime, "clock" | "log">;
  readonly keys: Pick<SecretBox, "keyId" | "derive">;
  readonly rules: Rules;
  readonly records: RecordWriter;
  readonly commands: CommandEntrySink;
  /** Policies and rules that were sent to hosts. The entries of a host may name no others. */
  readonly sent: Pick<SentPolicies, "missing" | "look" | "needs" | "zones">;
  /** Returns the zone in the host's record, for times without a zone. Absent: no host has a zone. */
  readonly zoneOf?: (principal: Principal, host: string) => Promise<string | undefined>;
  readonly ospaceOf: (tenant: string) => Promise<string>;
}

type UsableRules = Map<string, Promise<Rule | AppError>>;

const NONE: ReadonlySet<string> = new Set();

/**
 * Stores the entries of an agent's outbox as objects. Each entry takes effect exactly once. The rows depend only on the
 * entries and on the pin: the digests of the rules, and the write time. The agent got both from a controller before it
 * sent the entries. So controllers need no agreement. Every controller that gets a batch writes the same rows under the
 * same ids, even if the batch comes several times.
 */
export class IngestService implements EntrySink {
  readonly #dependencies: Dependencies;
  readonly #hints: Hints;
  readonly #pins: Pins;
  /** Time at which each rule text was last pinned, by tenant and digest. */
  readonly #kept = new Map<string, number>();

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies;
    this.#hints = new Hints(dependencies);
    this.#pins = new Pins({ clock: dependencies.runtime.clock, keys: dependencies.keys });
  }

  acknowledged(source: EntrySource): Promise<number> {
    this.#dependencies.sent.look(source.tenant, source.host);
    return this.#hints.acknowledged(source);
  }

  async told(source: EntrySource, { rules, last }: Ask): Promise<Told> {
    if (rules.length > INGEST_RULES_PER_BATCH_MAX)
      throw new AppError("invalid", `More than ${INGEST_RULES_PER_BATCH_MAX} rules are asked for at once.`);
    const principal = await this.#principal(source);
    const asked = { policies: NONE, rules: new Set(rules) };
    const unsent = await this.#dependencies.sent.missing(source.tenant, source.host, asked);
    const told: PinnedRule[] = [];
    for (const key of asked.rules) {
      const rule = unsent.rules.has(key) ? notSent(key, source) : await this.#current(principal, key, source);
      if (isGone(rule) && (await this.#dependencies.sent.needs(source.tenant, source.host, key))) throw waits(key);
      told.push(this.#pins.rule(source, key, rule));
    }
    return { time: this.#pins.time(source, last), rules: told };
  }

  async accept(source: EntrySource, batches: readonly Batch[]): Promise<void> {
    await this.store(source, batches);
    this.#hints.note(source, batches.flatMap((batch) => batch.entries).at(-1)?.sequence ?? 0);
  }

  /** Stores batches as `accept` does, of a stream that is not continued later: its position is not kept. */
  async store(source: EntrySource, batches: readonly Batch[]): Promise<void> {
    for (const batch of batches) this.#pins.check(source, batch);
    const { records, commands, sent } = this.#dependencies;
    const entries = batches.flatMap((batch) => batch.entries);
    const policies = policyNames(entries);
    const unsent = await sent.missing(source.tenant, source.host, { policies, rules: NONE });
    const usable: UsableRules = new Map();
    const prepared: Omit<PreparedBatch, "foreignCommands">[] = [];
    for (const batch of batches)
      prepared.push({ ...(await this.#prepare(source, batch, usable)), foreign: unsent.policies });
    const ofCommands = entries.filter(({ body }) => body?.$case === "output" || body?.$case === "result");
    const foreignCommands = ofCommands.length > 0 ? await commands.accept(source, ofCommands) : NONE;
    await records.write(prepared.map((batch) => ({ ...batch, foreignCommands })));
  }

  /** Call when a host was removed. */
  forget(tenant: string, host: string): Promise<void> {
    return this.#hints.forget({ tenant, host });
  }

  /** Forgets a tenant that no longer exists. */
  leave(tenant: string): void {
    this.#hints.leave(tenant);
    this.#kept.clear();
  }

  close(): Promise<void> {
    return this.#hints.close();
  }

  async #prepare(
    source: EntrySource,
    { entries, pin, missing }: Batch,
    usable: UsableRules,
  ): Promise<Omit<PreparedBatch, "foreignCommands" | "foreign">> {
    const principal = await this.#principal(source, entries.at(-1));
    const rules = new Map<string, Rule | AppError>();
    const pinned = new Map(pin?.rules.map((rule) => [rule.rule, rule]));
    for (const key of ruleKeys(entries)) {
      const name = JSON.stringify([key, pinned.get(key)?.digest, pinned.get(key)?.error]);
      const rule = usable.get(name) ?? this.#pinned(principal, key, pinned.get(key));
      usable.set(name, rule);
      rules.set(key, await rule);
    }
    const writeUs = pin && hasRecords(entries) ? writeTimes(pin, entries) : undefined;
    return { principal, source, entries, rules, missing, ...(writeUs && { writeUs }) };
  }

  async #pinned(principal: Principal, key: string, pinned: PinnedRule | undefined): Promise<Rule | AppError> {
    const { error = "", digest = "" } = pinned ?? {};
    if (error !== "") return new AppError("invalid", error);
    const rule = await usable(this.#dependencies.rules.pinned(principal, key, digest));
    if (rule instanceof AppError && rule.details?.["reason"] === "text_gone") throw pinRefused(rule.message);
    return rule;
  }

  /** The current rule, or the error that makes it unusable. Its text is stored before the agent can pin its digest. */
  async #current(principal: Principal, key: string, source: EntrySource): Promise<Rule | AppError> {
    const { rules, runtime } = this.#dependencies;
    const rule = await usable(this.#zoned(principal, key, source));
    if (rule instanceof AppError) return rule;
    const name = `${principal.tenant}/${rule.digest}`;
    const nowMs = Math.floor(runtime.clock.nowMs());
    const keptMs = this.#kept.get(name);
    if (keptMs !== undefined && nowMs < keptMs + RULE_TEXT_RENEW_MS / 2) return rule;
    await rules.pin(principal, rule, nowMs + RULE_TEXT_KEPT_MS);
    if (this.#kept.size >= RULE_CACHE_MAX_ENTRIES) this.#kept.clear();
    this.#kept.set(name, nowMs);
    return rule;
  }

  /** The current rule with the time zones of the host and of the host's policies. */
  async #zoned(principal: Principal, key: string, { tenant, host }: EntrySource): Promise<Rule> {
    const { rules, sent, zoneOf } = this.#dependencies;
    const rule = await rules.load(principal, key);
    return withZones(rule, { policies: await sent.zones(tenant, host, key), host: await zoneOf?.(principal, host) });
  }

  async #principal({ tenant }: EntrySource, entry?: Entry): Promise<Principal> {
    return systemPrincipal(tenant, await this.#dependencies.ospaceOf(tenant), entry?.traceparent ?? "");
  }
}

function isGone(rule: Rule | AppError): boolean {
  return rule instanceof AppError && rule.details?.["reason"] === "no_rule";
}

/** Error for a removed rule that a policy of the host still needs. Its records wait in the agent's outbox. */
function waits(rule: string): AppError {
  const text = `The rule ${rule} was removed: its records wait on the host until it is stored again, or no policy of the host needs it.`;
  return new AppError("unavailable", text);
}

function notSent(rule: string, { host }: EntrySource): AppError {
  const text = `The rule ${beginningOf(rule, INGEST_FAULT_MAX_CHARACTERS)} belongs to no policy that was sent to ${host}.`;
  return new AppError("invalid", text);
}

/**
 * Returns the error of an unusable rule instead of throwing it. Its records then become error records, and the stream
 * continues. Throws if the store does not answer.
 */
async function usable(rule: Promise<Rule>): Promise<Rule | AppError> {
  try {
    return await rule;
  } catch (error) {
    if (error instanceof AppError && !["unavailable", "deadline", "unknown_outcome"].includes(error.code)) return error;
    throw error;
  }
}
