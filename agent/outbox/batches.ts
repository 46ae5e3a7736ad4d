import { AppError } from "../../common/errors.ts";
import {
  INGEST_RULES_PER_BATCH_MAX,
  PIN_AHEAD_MAX_US,
  PIN_TOLD_FRESH_MS,
  SESSION_BATCH_MAX_BYTES,
} from "../../common/limits.ts";
import { writeSpanUs } from "../../common/agent/pins.ts";
import type { Clock } from "../../common/time.ts";
import type { Ask, Batch, Entry, Pin, PinnedRule, Told, ToldTime } from "../../proto/gen/agent/v1/agent.ts";
import { recordsFacts } from "./entries.ts";
import type { Outbox } from "./outbox.ts";
import type { PinnedBatch } from "./pins.ts";
import type { OutboxReader } from "./reader.ts";

/** The parts of an outbox that batches are made from. */
export type BatchOutbox = Pick<Outbox, "streamId" | "acknowledged"> & {
  readonly pins: Pick<Outbox["pins"], "after" | "add" | "leaveOut" | "nextUs" | "told">;
  readonly reader: (from: number) => Pick<OutboxReader, "next" | "close">;
};

export interface BatchesOptions {
  readonly outbox: BatchOutbox;
  readonly clock: Clock;
  readonly ask: (ask: Ask) => Promise<Told>;
}

/** An answer of a controller. It is used for batches that are pinned within `PIN_TOLD_FRESH_MS`. */
interface Said<T> {
  readonly what: T;
  readonly atMs: number;
}

/**
 * Makes the batches of one session from the entries of an outbox, in their order. A batch with records is pinned before
 * it is first sent. Its rows depend only on its entries and its pin, so sending it again stores the same rows.
 */
export class Batches {
  readonly #options: BatchesOptions;
  readonly #reader: ReturnType<BatchOutbox["reader"]>;
  readonly #rules = new Map<string, Said<PinnedRule>>();
  #time: Said<ToldTime> | undefined;
  #sent: number;
  /** Entries that were read but not sent, because there was no room for their pin. */
  #held: readonly Entry[] = [];

  /**
   * The controllers have stored all entries up to `acknowledged`. If that sequence is within a pinned batch, the first
   * batch is that whole batch, because it must be sent again unchanged.
   */
  constructor(options: BatchesOptions, acknowledged: number) {
    this.#options = options;
    const cut = options.outbox.pins.after(acknowledged);
    this.#sent = cut && cut.first <= acknowledged ? cut.first - 1 : acknowledged;
    this.#reader = options.outbox.reader(this.#sent + 1);
  }

  /** Last sequence of the latest batch. */
  get sent(): number {
    return this.#sent;
  }

  /**
   * The next batch, of at most `maxEntries` entries unless it is pinned already. Undefined when there is nothing to
   * send, or when its pin has no room until an earlier batch is acknowledged.
   */
  async next(maxEntries: number): Promise<Batch | undefined> {
    if (maxEntries <= 0) return undefined;
    const pinned = this.#options.outbox.pins.after(this.#sent);
    if (this.#held.length === 0) this.#held = await this.#fresh(maxEntries, pinned?.first ?? Infinity);
    const [first] = this.#held;
    if (!first) return pinned && this.#again(pinned, maxEntries);
    const missing = first.sequence - this.#sent - 1;
    const pin = await this.#pin(this.#held, missing);
    if (pin === "no room") return undefined;
    const entries = this.#held;
    this.#held = [];
    return this.#batch(entries, missing, pin);
  }

  async close(): Promise<void> {
    await this.#reader.close();
  }

  #batch(entries: readonly Entry[], missing: number, pin: Pin | undefined): Batch {
    this.#sent = entries.at(-1)?.sequence ?? this.#sent;
    return { streamId: this.#options.outbox.streamId, entries: [...entries], pin, missing };
  }

  /**
   * Reads entries for one batch: consecutive sequences below `before`, with at most `INGEST_RULES_PER_BATCH_MAX`
   * different rules.
   */
  #fresh(maxEntries: number, before: number): Promise<readonly Entry[]> {
    const rules = new Set<string>();
    return this.#reader.next(maxEntries, SESSION_BATCH_MAX_BYTES, (entry, last) => {
      const rule = recordsFacts(entry)?.rule;
      if (rule !== undefined) rules.add(rule);
      const follows = last === undefined || entry.sequence === last.sequence + 1;
      return follows && entry.sequence < before && rules.size <= INGEST_RULES_PER_BATCH_MAX;
    });
  }

  /**
   * Sends a pinned batch again. Entries that damage to the disk has removed since are counted as missing. If all of
   * them are lost, the batch is dropped and the next one counts them.
   */
  async #again(pinned: PinnedBatch, maxEntries: number): Promise<Batch | undefined> {
    const { first, last, pin } = pinned;
    const size = last - first + 1;
    const entries = await this.#reader.next(size, Infinity, ({ sequence }) => sequence <= last);
    if (entries.length === 0) {
      this.#options.outbox.pins.leaveOut(pinned);
      return this.next(maxEntries);
    }
    const before = Math.max(pinned.missing, first - 1 - this.#sent);
    return this.#batch(entries, before + size - entries.length, pin);
  }

  /**
   * Pins a batch of these entries. The pin is on disk when the promise resolves. Undefined when no entry has records;
   * `"no room"` when the pin does not fit into the outbox now.
   */
  async #pin(entries: readonly Entry[], missing: number): Promise<Pin | "no room" | undefined> {
    const facts = entries.map((entry) => recordsFacts(entry));
    if (facts.every((one) => one === undefined)) return undefined;
    const keys = new Set(facts.flatMap((one) => one?.rule ?? []));
    const [first, last] = [entries[0]?.sequence ?? 0, entries.at(-1)?.sequence ?? 0];
    const { pins } = this.#options.outbox;
    const time = await this.#ask(keys);
    const elapsedUs = Math.floor((this.#options.clock.monotonicMs() - time.atMs) * US_PER_MS);
    const spanUs = facts.reduce((sum, one) => sum + writeSpanUs(one?.records ?? 0), 0);
    const latestUs = time.what.us + PIN_AHEAD_MAX_US - spanUs;
    const writeUs = Math.min(Math.max(time.what.us + elapsedUs, pins.nextUs), latestUs);
    const rules = [...keys].flatMap((key) => this.#rules.get(key)?.what ?? []);
    const pin: Pin = { writeUs, told: time.what, rules };
    const nextUs = Math.max(pins.nextUs, writeUs + spanUs);
    return (await pins.add({ first, last, missing, pin }, nextUs)) ? pin : "no room";
  }

  /**
   * Asks a controller for the rules whose answers are older than `PIN_TOLD_FRESH_MS` or absent. Resolves with the time
   * that a controller told.
   */
  async #ask(keys: ReadonlySet<string>): Promise<Said<ToldTime>> {
    const { outbox, clock, ask } = this.#options;
    const oldestMs = clock.monotonicMs() - PIN_TOLD_FRESH_MS;
    for (const [key, { atMs }] of this.#rules) if (atMs <= oldestMs) this.#rules.delete(key);
    const stale = [...keys].filter((key) => !this.#rules.has(key));
    if (stale.length === 0 && this.#time && this.#time.atMs > oldestMs) return this.#time;
    const askedMs = clock.monotonicMs();
    const { time, rules } = await ask({ rules: stale, last: outbox.pins.told });
    for (const rule of rules) if (stale.includes(rule.rule)) this.#rules.set(rule.rule, { what: rule, atMs: askedMs });
    if (!time || !stale.every((key) => this.#rules.has(key)))
      throw new AppError("invalid", "The controller does not tell what records are parsed by.");
    this.#time = { what: time, atMs: clock.monotonicMs() };
    return this.#time;
  }
}

const US_PER_MS = 1_000;
