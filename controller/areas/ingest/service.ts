import { AppError } from "../../../common/errors.ts";
import { INGEST_STREAMS_KNOWN_MAX } from "../../../common/limits.ts";
import type { Entry } from "../../../proto/gen/agent/v1/agent.ts";
import type { Stores } from "../../store/engine.ts";
import type { EntrySink, EntrySource } from "../hosts/index.ts";
import { systemPrincipal, type Principal } from "../permissions/index.ts";
import type { Rule, Rules } from "../rules/index.ts";
import type { Batch, RecordWriter } from "./records.ts";
import { MarkStore, type Mark } from "./store.ts";
import type { CommandEntrySink } from "./types.ts";

interface Dependencies {
  readonly stores: Stores;
  readonly rules: Rules;
  readonly records: RecordWriter;
  readonly commands: CommandEntrySink;
  readonly ospaceOf: (tenant: string) => Promise<string>;
}

/** What this controller knows of a stream while its session lasts. */
interface StreamState {
  mark: Mark;
  /** The first batch after the mark was loaded may be a repetition: it keeps the pins it was begun with. */
  repeating: boolean;
}

/**
 * From the outbox of an agent to stored objects, each entry once in effect. The order is the promise: pin the rules with the mark,
 * store everything of the batch under ids made of (stream, sequence, ordinal), store the mark, only then acknowledge.
 */
export class IngestService implements EntrySink {
  readonly #dependencies: Dependencies;
  readonly #streams = new Map<string, StreamState>();

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies;
  }

  /** Reads the mark afresh: another controller may have served the stream meanwhile. */
  async acknowledged(source: EntrySource): Promise<number> {
    const mark = await (await this.#marks(source)).load(source.streamId, source.host);
    this.#remember(source, { mark, repeating: Object.keys(mark.pins).length > 0 });
    return mark.acknowledged;
  }

  async accept(source: EntrySource, entries: readonly Entry[]): Promise<number> {
    const state = await this.#state(source);
    const fresh = freshEntries(entries, state.mark.acknowledged);
    const last = fresh.at(-1);
    if (!last) return state.mark.acknowledged;
    const principal = await this.#principal(source, last);
    const rules = await this.#pinnedRules(source, { principal, state, entries: fresh });
    const missing = (fresh[0]?.sequence ?? 0) - state.mark.acknowledged - 1;
    await this.#store({ principal, source, entries: fresh, rules, missing });
    await this.#save(source, state, { ...state.mark, acknowledged: last.sequence });
    state.repeating = false;
    return last.sequence;
  }

  async #store(batch: Batch): Promise<void> {
    const commandEntries = batch.entries.filter(({ body }) => body?.$case === "output" || body?.$case === "result");
    if (commandEntries.length > 0) await this.#dependencies.commands.accept(batch.source, commandEntries);
    await this.#dependencies.records.write(batch);
  }

  /** The rules this batch is parsed with, their texts kept and named by the mark before any of it is stored. */
  async #pinnedRules(source: EntrySource, batch: { principal: Principal; state: StreamState; entries: readonly Entry[] }) {
    const { principal, state, entries } = batch;
    const rules = new Map<string, Rule | AppError>();
    const pins: Record<string, string> = {};
    for (const key of ruleKeys(entries)) {
      const rule = await this.#rule(principal, key, state.repeating ? state.mark.pins[key] : undefined);
      rules.set(key, rule);
      if (!(rule instanceof AppError)) pins[key] = rule.digest;
    }
    await this.#pin(source, { principal, state, rules, pins: { ...state.mark.pins, ...pins } });
    return rules;
  }

  async #pin(
    source: EntrySource,
    { principal, state, rules, pins }: { principal: Principal; state: StreamState; rules: ReadonlyMap<string, Rule | AppError>; pins: Record<string, string> },
  ): Promise<void> {
    const changed = Object.keys(pins).filter((key) => state.mark.pins[key] !== pins[key]);
    if (changed.length === 0) return;
    for (const key of changed) {
      const rule = rules.get(key);
      if (rule && !(rule instanceof AppError)) await this.#dependencies.rules.pin(principal, rule);
    }
    await this.#save(source, state, { ...state.mark, pins });
  }

  /** A rule that cannot be used is an answer here: its records become error records, the stream goes on. */
  async #rule(principal: Principal, key: string, digest: string | undefined): Promise<Rule | AppError> {
    try {
      if (digest !== undefined) return await this.#dependencies.rules.pinned(principal, key, digest);
      return await this.#dependencies.rules.load(principal, key);
    } catch (error) {
      if (error instanceof AppError && !["unavailable", "deadline", "unknown_outcome"].includes(error.code)) return error;
      throw error;
    }
  }

  async #save(source: EntrySource, state: StreamState, mark: Mark): Promise<void> {
    await (await this.#marks(source)).save(source.streamId, mark);
    state.mark = mark;
  }

  /** The state of a stream can be read again at any time, so the oldest one may go. */
  #remember(source: EntrySource, state: StreamState): void {
    const oldest = this.#streams.keys().next();
    if (this.#streams.size >= INGEST_STREAMS_KNOWN_MAX && !oldest.done) this.#streams.delete(oldest.value);
    this.#streams.delete(streamKey(source));
    this.#streams.set(streamKey(source), state);
  }

  async #state(source: EntrySource): Promise<StreamState> {
    if (!this.#streams.has(streamKey(source))) await this.acknowledged(source);
    const state = this.#streams.get(streamKey(source));
    if (!state) throw new AppError("internal", `The stream ${source.streamId} was dropped meanwhile.`);
    return state;
  }

  async #principal(source: EntrySource, entry: Entry): Promise<Principal> {
    return systemPrincipal(source.tenant, await this.#dependencies.ospaceOf(source.tenant), entry.traceparent);
  }

  async #marks(source: EntrySource): Promise<MarkStore> {
    return new MarkStore((await this.#dependencies.stores.tenant(source.tenant)).kv);
  }
}

function streamKey(source: EntrySource): string {
  return `${source.tenant}/${source.streamId}`;
}

/** Entries above the mark. A hole inside a batch is a fault of the sender and refused. */
function freshEntries(entries: readonly Entry[], acknowledged: number): readonly Entry[] {
  const fresh = entries.filter((entry) => entry.sequence > acknowledged);
  fresh.forEach((entry, index) => {
    const expected = (fresh[0]?.sequence ?? 0) + index;
    if (entry.sequence !== expected) throw new AppError("invalid", `Entry ${expected} is missing before ${entry.sequence}.`);
  });
  return fresh;
}

function ruleKeys(entries: readonly Entry[]): ReadonlySet<string> {
  const keys = new Set<string>();
  for (const { body } of entries) if (body?.$case === "records" && body.value.rule !== "") keys.add(body.value.rule);
  return keys;
}
