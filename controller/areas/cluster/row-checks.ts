import { errorText, isAppError } from "../../../common/errors.ts";
import {
  ROW_CHECK_AFTER_START_MS,
  ROW_CHECK_CRASHES_MAX,
  ROW_CHECK_EVERY_MS,
  ROW_CHECK_EXAMPLES_MAX,
  ROW_CHECK_LATE_MS,
  ROW_CHECK_NOTE_MS,
  ROW_CHECK_REST_MIN_MS,
  ROW_CHECK_TIME_SHARE,
} from "../../../common/limits.ts";
import { wait } from "../../../common/time.ts";
import type { Runtime } from "../../runtime.ts";
import { isStoreDamaged } from "../../store/damage.ts";
import type { Stores, TenantStore } from "../../store/engine.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import type { Controllers } from "../../store/journal/index.ts";
import { putOnce } from "../../store/once.ts";
import type { DamagedRow, RowsRead } from "../../store/scrub.ts";
import { requirePermission, type Principal } from "../permissions/index.ts";
import type { DamagedStore, RowCheckState, RowCheckStatus } from "./types.ts";

const KEY = "rows/check";
/** Name of the installation's own store, which belongs to no tenant. */
const INSTALLATION = "";

export interface RowCheckDependencies {
  readonly stores: Stores;
  readonly runtime: Runtime;
  readonly controllers: Controllers;
}

/** A round that this controller runs. The next write of its state is conditional on the revision. */
interface Round {
  readonly store: string;
  state: RowCheckState;
  revision: number;
  notedMs: number;
}

/**
 * Reads all rows of each store in slow, repeated rounds, and reports damaged rows. One controller at a time checks a
 * store. If that controller ends, another one continues from the last recorded position.
 */
export class RowCheckService {
  readonly #with: RowCheckDependencies;
  readonly #rounds = new Map<string, Round>();
  /** States as last seen, including stores that other controllers check. */
  readonly #known = new Map<string, Partial<RowCheckState>>();
  readonly #seenMs = new Map<string, number>();
  readonly #stop = new AbortController();
  readonly #begunMs: number;
  #installationLookedMs = -Infinity;
  #running: Promise<void> | undefined;

  constructor(dependencies: RowCheckDependencies) {
    this.#with = dependencies;
    this.#begunMs = dependencies.runtime.clock.monotonicMs();
  }

  /** See `Area.maintain`. */
  async maintain(tenant: string): Promise<void> {
    await this.#look(tenant);
    const atMs = this.#with.runtime.clock.monotonicMs();
    if (atMs - this.#installationLookedMs < ROW_CHECK_NOTE_MS) return;
    this.#installationLookedMs = atMs;
    await this.#look(INSTALLATION);
  }

  leave(tenant: string): void {
    this.#rounds.delete(tenant);
    this.#known.delete(tenant);
    this.#seenMs.delete(tenant);
  }

  async status(principal: Principal): Promise<RowCheckStatus> {
    requirePermission(principal, "cluster:read");
    const { tenant } = principal;
    const state = this.#rounds.get(tenant)?.state ?? (await this.#stored(tenant)).state;
    const { endedMs, last } = state;
    return {
      ...(endedMs === undefined && state.startedMs !== undefined && { running: reportOf(state as RowCheckState) }),
      ...(last && { last }),
      isLate: this.#ageMs(tenant, state) > ROW_CHECK_LATE_MS,
    };
  }

  /** Stores with damaged rows, as of the last maintenance. */
  damaged(): readonly DamagedStore[] {
    return [...this.#states()].flatMap(([store, state]) => {
      const tables = damagedTables(state);
      const rows = Object.values(tables).reduce((sum, count) => sum + count, 0);
      if (rows === 0) return [];
      return [{ ...(store === INSTALLATION ? {} : { tenant: store }), rows, tables: Object.keys(tables) }];
    });
  }

  get damagedRows(): number {
    return this.damaged().reduce((sum, { rows }) => sum + rows, 0);
  }

  /** Time since the longest waiting store was last read to the end, or since this controller first saw it. */
  get longestAgeMs(): number {
    return Math.max(0, ...[...this.#states()].map(([store, state]) => this.#ageMs(store, state)));
  }

  /** Resolves when no round runs here. */
  async settled(): Promise<void> {
    await this.#running;
  }

  /** Records the positions of running rounds, so that another controller continues there. */
  async close(): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  *#states(): Iterable<readonly [string, Partial<RowCheckState>]> {
    for (const [store, known] of this.#known) yield [store, this.#rounds.get(store)?.state ?? known];
  }

  #ageMs(store: string, { last, startedMs }: Partial<RowCheckState>): number {
    const nowMs = this.#with.runtime.clock.nowMs();
    return nowMs - (last?.endedMs ?? startedMs ?? this.#seenMs.get(store) ?? nowMs);
  }

  async #look(store: string): Promise<void> {
    if (this.#stop.signal.aborted || this.#rounds.has(store)) return;
    const { state, revision } = await this.#stored(store);
    const nowMs = this.#with.runtime.clock.nowMs();
    this.#known.set(store, state);
    if (!this.#seenMs.has(store)) this.#seenMs.set(store, nowMs);
    const next = this.#isYoung() ? undefined : this.#next(state, nowMs);
    if (next === undefined) return;
    const round = { store, state: next, revision, notedMs: this.#with.runtime.clock.monotonicMs() };
    if (!(await this.#note(round))) return;
    this.#known.set(store, next);
    this.#rounds.set(store, round);
    this.#running ??= this.#run();
  }

  #isYoung(): boolean {
    return this.#with.runtime.clock.monotonicMs() - this.#begunMs < ROW_CHECK_AFTER_START_MS;
  }

  /** The round to begin, or to take over from a controller that is gone; `undefined` if there is none. */
  #next(state: Partial<RowCheckState>, nowMs: number): RowCheckState | undefined {
    const { own } = this.#with.controllers;
    const { owner, startedMs, endedMs, last } = state;
    if (startedMs === undefined || endedMs !== undefined) {
      if (startedMs !== undefined && nowMs - startedMs < ROW_CHECK_EVERY_MS) return undefined;
      return { ...NOTHING, owner: own, startedMs: nowMs, ...(last && { last }) };
    }
    if (owner !== own && owner !== undefined && this.#with.controllers.has(owner)) return undefined;
    const isCrash = owner !== own && owner !== undefined;
    return { ...(state as RowCheckState), owner: own, crashes: (state.crashes ?? 0) + (isCrash ? 1 : 0) };
  }

  /** Takes turns between the rounds, with a pause after each turn so that other work is not slowed down. */
  async #run(): Promise<void> {
    const { clock } = this.#with.runtime;
    const { signal } = this.#stop;
    while (this.#rounds.size > 0 && !signal.aborted) {
      for (const round of [...this.#rounds.values()]) {
        const beganMs = clock.monotonicMs();
        await this.#turn(round);
        const tookMs = clock.monotonicMs() - beganMs;
        const restMs = Math.max(ROW_CHECK_REST_MIN_MS, tookMs * (1 / ROW_CHECK_TIME_SHARE - 1));
        await wait(clock, restMs, signal);
        if (signal.aborted) break;
      }
    }
    for (const round of this.#rounds.values()) await this.#release(round);
    this.#rounds.clear();
    // Synchronous with the end of the loop, so that the next round starts a new loop.
    this.#running = undefined;
  }

  async #turn(round: Round): Promise<void> {
    try {
      if (await this.#read(round)) return;
    } catch (error) {
      if (isAppError(error, "invalid") && round.state.cursor !== undefined) {
        // The cursor was recorded by a version with other tables.
        round.state = { ...round.state, ...NOTHING, cursor: undefined };
        return;
      }
      // The stores are unavailable, or the tenant is gone. Maintenance restarts at the recorded position.
      this.#with.runtime.log.warn({ tenant: round.store, reason: errorText(error) }, "the row check goes on later");
    }
    if (this.#rounds.get(round.store) === round) this.#rounds.delete(round.store);
  }

  /** Returns true while this controller continues with the round. */
  async #read(round: Round): Promise<boolean> {
    const { clock } = this.#with.runtime;
    const { scrub } = await this.#store(round.store);
    const { crashes, cursor } = round.state;
    const isPassing = crashes > ROW_CHECK_CRASHES_MAX;
    const page = await scrub.rows({ ...(cursor === undefined ? {} : { cursor }), ...(isPassing && { isPassing }) });
    this.#tell(round, page.damaged);
    round.state = { ...added(round.state, page), crashes: 0 };
    if (page.cursor === undefined) return this.#end(round);
    // After earlier crashes at this position, record without delay that this turn did not crash.
    if (crashes === 0 && clock.monotonicMs() - round.notedMs < ROW_CHECK_NOTE_MS) return true;
    return this.#note(round);
  }

  async #end(round: Round): Promise<false> {
    const { clock, log } = this.#with.runtime;
    const endedMs = clock.nowMs();
    const report = { ...reportOf(round.state), endedMs };
    round.state = { ...round.state, endedMs, last: report };
    const { looked, startedMs } = report;
    if (await this.#note(round)) {
      const told = { tenant: round.store, looked, damaged: report.damaged, minutes: (endedMs - startedMs) / 60_000 };
      if (endedMs - startedMs > ROW_CHECK_LATE_MS) log.warn(told, "a round of the row check took more than a day");
      if (report.damaged > 0) log.error(told, "rows are damaged: see deploy/docs/upkeep.md");
      else log.debug(told, "all rows were read");
    }
    return false;
  }

  #tell({ store, state }: Round, damaged: readonly DamagedRow[]): void {
    const { log } = this.#with.runtime;
    for (const { table, key, reason } of damaged.slice(0, Math.max(0, ROW_CHECK_EXAMPLES_MAX - state.damaged)))
      log.error({ tenant: store, table, key, reason }, "a row is damaged");
  }

  async #release(round: Round): Promise<void> {
    try {
      await this.#note({ ...round, state: { ...round.state, owner: undefined } });
    } catch (error) {
      this.#with.runtime.log.warn(
        { tenant: round.store, reason: errorText(error) },
        "a row check's place is not noted",
      );
    }
  }

  /** Returns false if another controller has the round. */
  async #note(round: Round): Promise<boolean> {
    const { kv } = await this.#store(round.store);
    const put = { key: KEY, value: encodeJson(round.state), ifRevision: round.revision };
    const written = await putOnce(kv, put);
    if (!written.ok) return false;
    round.revision = written.revision;
    round.notedMs = this.#with.runtime.clock.monotonicMs();
    if (this.#rounds.get(round.store) === round) this.#known.set(round.store, round.state);
    return true;
  }

  async #stored(store: string): Promise<{ readonly state: Partial<RowCheckState>; readonly revision: number }> {
    const { kv } = await this.#store(store);
    const entry = await kv.get(KEY).catch((error: unknown) => this.#forget(store, error));
    if (entry === undefined) return { state: {}, revision: 0 };
    return { state: decodeStored<Partial<RowCheckState>>(entry.value), revision: entry.revision };
  }

  /** If the check's own entry is damaged, deletes it after logging, so that the next round can begin. */
  async #forget(store: string, error: unknown): Promise<undefined> {
    if (!isStoreDamaged(error)) throw error;
    this.#with.runtime.log.error({ tenant: store, key: KEY, reason: errorText(error) }, "a row is damaged");
    await (await this.#store(store)).kv.delete(KEY);
  }

  #store(store: string): Promise<TenantStore> {
    return store === INSTALLATION ? this.#with.stores.system() : this.#with.stores.tenant(store);
  }
}

const NOTHING = { crashes: 0, looked: 0, damaged: 0, tables: {}, examples: [] };
function added(state: RowCheckState, page: RowsRead): RowCheckState {
  const tables = { ...state.tables };
  for (const { table } of page.damaged) tables[table] = (tables[table] ?? 0) + 1;
  return {
    ...state,
    cursor: page.cursor,
    looked: state.looked + page.looked,
    damaged: state.damaged + page.damaged.length,
    tables,
    examples: [...state.examples, ...page.damaged].slice(0, ROW_CHECK_EXAMPLES_MAX),
  };
}

function reportOf({
  startedMs,
  looked,
  damaged,
  tables,
  examples,
}: RowCheckState): NonNullable<RowCheckStatus["running"]> {
  return { startedMs, looked, damaged, tables, examples };
}

/** Damaged rows by table: the higher count of the last complete round and the running one. */
function damagedTables({ last, tables = {} }: Partial<RowCheckState>): Readonly<Record<string, number>> {
  const found: Record<string, number> = { ...last?.tables };
  for (const [table, count] of Object.entries(tables)) found[table] = Math.max(found[table] ?? 0, count);
  return found;
}
