import { AppError } from "../../../common/errors.ts";
import {
  INGEST_FAULT_MAX_CHARACTERS,
  INGEST_STREAM_RETIRED_MS,
  INGEST_STREAMS_KNOWN_MAX,
  RULE_CACHE_MAX_ENTRIES,
} from "../../../common/limits.ts";
import type { Entry } from "../../../proto/gen/agent/v1/agent.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import type { EntrySink, EntrySource } from "../hosts/index.ts";
import { systemPrincipal, type Principal } from "../permissions/index.ts";
import type { Rule, Rules } from "../rules/index.ts";
import { freshEntries, nextBatch, policyNames, ruleKeys } from "./batches.ts";
import { HeldStream } from "./held-stream.ts";
import type { Batch, RecordWriter } from "./records.ts";
import { MarkStore, type BegunBatch, type PinnedRule } from "./store.ts";
import type { SentPolicies } from "./sent-policies.ts";
import type { CommandEntrySink } from "./types.ts";

interface Dependencies {
  readonly stores: Stores;
  readonly runtime: Pick<Runtime, "clock" | "random">;
  readonly rules: Rules;
  readonly records: RecordWriter;
  readonly commands: CommandEntrySink;
  /** The policies an agent may name: those that were sent to its host. */
  readonly sent: Pick<SentPolicies, "missing" | "look">;
  readonly ospaceOf: (tenant: string) => Promise<string>;
}

/** A batch with what its entries are parsed with. */
interface Prepared {
  /** Policies that entries name and the host was never sent. */
  readonly foreign: ReadonlySet<string>;
  readonly rules: ReadonlyMap<string, Rule | AppError>;
  readonly begun?: BegunBatch;
}

const CLAIM_BYTES = 12;
const NONE: ReadonlySet<string> = new Set();

/**
 * From the outbox of an agent to stored objects, each entry once in effect. The order is the promise: claim the stream
 * with its session; name the batch and its rules in the mark; store everything of it under ids made of (stream,
 * sequence, ordinal); write the mark; only then acknowledge. A holder that lost the claim fails with
 * `AppError("conflict")` at its next write of the mark.
 */
export class IngestService implements EntrySink {
  readonly #dependencies: Dependencies;
  readonly #streams = new Map<string, HeldStream>();
  /** Rule texts known to be kept for repetitions; they are never removed. */
  readonly #kept = new Set<string>();
  /** Tenants without marks from before streams were listed. */
  readonly #listed = new Set<string>();

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies;
  }

  /** Claims the stream: its former holder, here or on another controller, can no longer acknowledge anything. */
  async acknowledged(source: EntrySource): Promise<number> {
    const { runtime, stores, sent } = this.#dependencies;
    sent.look(source.tenant, source.host);
    const held = await HeldStream.claim({
      marks: new MarkStore((await stores.tenant(source.tenant)).kv),
      streamId: source.streamId,
      host: source.host,
      claim: Buffer.from(runtime.random.bytes(CLAIM_BYTES)).toString("base64url"),
      nowMs: () => runtime.clock.nowMs(),
    });
    this.#remember(source, held);
    return held.mark.acknowledged;
  }

  /** A host was removed. */
  async forget(tenant: string, host: string): Promise<void> {
    const { kv } = await this.#dependencies.stores.tenant(tenant);
    await new MarkStore(kv).retire(host, this.#retiredUntilMs());
  }

  /** The tenant is there no more. */
  leave(tenant: string): void {
    for (const key of this.#streams.keys()) if (key.startsWith(`${tenant}/`)) this.#streams.delete(key);
    this.#listed.delete(tenant);
    this.#kept.clear();
  }

  async maintain(tenant: string): Promise<void> {
    if (this.#listed.has(tenant)) return;
    const { kv } = await this.#dependencies.stores.tenant(tenant);
    await new MarkStore(kv).retireUnlisted(this.#retiredUntilMs());
    this.#listed.add(tenant);
  }

  #retiredUntilMs(): number {
    return this.#dependencies.runtime.clock.nowMs() + INGEST_STREAM_RETIRED_MS;
  }

  async accept(source: EntrySource, entries: readonly Entry[]): Promise<number> {
    const held = await this.#held(source);
    return held.inTurn(async () => {
      let rest = freshEntries(entries, held.mark.acknowledged);
      while (rest.length > 0) {
        const batch = nextBatch(rest, held.mark);
        await this.#take(source, held, batch);
        rest = rest.slice(batch.length);
      }
      return held.mark.acknowledged;
    });
  }

  async #take(source: EntrySource, held: HeldStream, entries: readonly Entry[]): Promise<void> {
    const [first, last] = [entries[0], entries.at(-1)];
    if (!first || !last) throw new AppError("internal", "A batch without entries was taken.");
    const principal = await this.#principal(source, last);
    const missing = first.sequence - held.mark.acknowledged - 1;
    const prepared = await this.#prepare(principal, held, { source, entries });
    await this.#store({ principal, source, entries, missing, ...prepared });
    await held.finish(last.sequence);
  }

  async #store(batch: Omit<Batch, "foreignCommands">): Promise<void> {
    const commandEntries = batch.entries.filter(({ body }) => body?.$case === "output" || body?.$case === "result");
    const foreignCommands =
      commandEntries.length > 0 ? await this.#dependencies.commands.accept(batch.source, commandEntries) : NONE;
    await this.#dependencies.records.write({ ...batch, foreignCommands });
  }

  /** The rules in the mark of a batch already begun; else the present rules, once the mark names them. */
  async #prepare(
    principal: Principal,
    held: HeldStream,
    { source, entries }: Pick<Batch, "source" | "entries">,
  ): Promise<Prepared> {
    const [first, last] = [entries[0]?.sequence ?? 0, entries.at(-1)?.sequence ?? 0];
    const earlier = held.mark.begun && last <= held.mark.begun.last ? held.mark.begun : undefined;
    const rules = new Map<string, Rule | AppError>();
    const pins: Record<string, PinnedRule> = { ...earlier?.rules };
    const keys = [...ruleKeys(entries)];
    const asked = { policies: policyNames(entries), rules: new Set(keys.filter((key) => !earlier?.rules[key])) };
    const unsent = await this.#dependencies.sent.missing(source.tenant, source.host, asked);
    for (const key of keys) {
      const pinned = earlier?.rules[key] ?? (unsent.rules.has(key) ? { error: notSent(key, source) } : undefined);
      const rule = pinned ? await this.#pinned(principal, key, pinned) : await this.#current(principal, key);
      rules.set(key, rule);
      pins[key] ??= rule instanceof AppError ? { error: rule.message } : { digest: rule.digest };
    }
    // Entries without a rule make the same rows at all times.
    const foreign = unsent.policies;
    if (rules.size === 0) return { rules, foreign };
    const known = earlier && [...rules.keys()].every((key) => earlier.rules[key]);
    return {
      rules,
      foreign,
      begun: known ? earlier : await held.begin({ first, last: Math.max(last, earlier?.last ?? 0), rules: pins }),
    };
  }

  async #pinned(principal: Principal, key: string, pinned: PinnedRule): Promise<Rule | AppError> {
    if ("error" in pinned) return new AppError("invalid", pinned.error);
    return usable(this.#dependencies.rules.pinned(principal, key, pinned.digest));
  }

  /** Its text is kept for repetitions before anything depends on it. */
  async #current(principal: Principal, key: string): Promise<Rule | AppError> {
    const rule = await usable(this.#dependencies.rules.load(principal, key));
    if (rule instanceof AppError) return new AppError("invalid", rule.message.slice(0, INGEST_FAULT_MAX_CHARACTERS));
    const name = `${principal.tenant}/${rule.digest}`;
    if (this.#kept.has(name)) return rule;
    await this.#dependencies.rules.pin(principal, rule);
    if (this.#kept.size >= RULE_CACHE_MAX_ENTRIES) this.#kept.clear();
    this.#kept.add(name);
    return rule;
  }

  /** The state of a stream can be read again at any time, so the oldest one may go. */
  #remember(source: EntrySource, held: HeldStream): void {
    this.#streams.delete(streamKey(source));
    const oldest = this.#streams.keys().next();
    if (this.#streams.size >= INGEST_STREAMS_KNOWN_MAX && !oldest.done) this.#streams.delete(oldest.value);
    this.#streams.set(streamKey(source), held);
  }

  async #held(source: EntrySource): Promise<HeldStream> {
    if (!this.#streams.has(streamKey(source))) await this.acknowledged(source);
    const held = this.#streams.get(streamKey(source));
    if (!held) throw new AppError("internal", `The stream ${source.streamId} was dropped meanwhile.`);
    return held;
  }

  async #principal(source: EntrySource, entry: Entry): Promise<Principal> {
    return systemPrincipal(source.tenant, await this.#dependencies.ospaceOf(source.tenant), entry.traceparent);
  }
}

function notSent(rule: string, { host }: EntrySource): string {
  return `The rule ${rule.slice(0, INGEST_FAULT_MAX_CHARACTERS)} belongs to no policy that was sent to ${host}.`;
}

/** A rule that cannot be used is an answer here: its records become error records, the stream goes on. */
async function usable(rule: Promise<Rule>): Promise<Rule | AppError> {
  try {
    return await rule;
  } catch (error) {
    if (error instanceof AppError && !["unavailable", "deadline", "unknown_outcome"].includes(error.code)) return error;
    throw error;
  }
}

function streamKey(source: EntrySource): string {
  return `${source.tenant}/${source.streamId}`;
}
