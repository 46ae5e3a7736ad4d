import { ANCHOR_OF_HEADS } from "../../../common/audit-anchor.ts";
import { mapLimited } from "../../../common/concurrency.ts";
import { AppError, errorText } from "../../../common/errors.ts";
import {
  AUDIT_HEAD_ATTEMPTS_MAX,
  AUDIT_HEAD_FAULTS_MAX,
  AUDIT_HEAD_INTERVAL_MS,
  AUDIT_HEAD_WRITES_MAX,
  AUDIT_MARK_INTERVAL_MS,
} from "../../../common/limits.ts";
import { wait } from "../../../common/time.ts";
import type { Runtime } from "../../runtime.ts";
import { CallDeadline } from "../../store/calls/call-deadline.ts";
import type { Anchoring } from "./anchoring.ts";
import { isPlain, type AuditRecord } from "./chain.ts";
import type { HeadStore, StoredRegister } from "./head-store.ts";
import { grown, isHeaded, merged, OldRuns, unexpired, type Head, type HeadFault, type HeadRegister } from "./heads.ts";

export interface HeadingOptions {
  readonly runtime: Pick<Runtime, "clock" | "log">;
  readonly store: HeadStore;
  /** Reads the trail, newest entries first. */
  readonly read: (tenant: string) => AsyncIterable<readonly AuditRecord[]>;
  /** Writes an entry to the trail that reports that heads of this run are late. */
  readonly late: (tenant: string) => Promise<void>;
  readonly anchoring?: Anchoring;
}

/** Heads that a verification compares with the trail. */
export interface KnownHeads {
  /** Absent if there is no valid register. */
  readonly register?: Omit<HeadRegister, "heads" | "pages" | "faults">;
  readonly seal?: string;
  readonly heads: readonly Head[];
  readonly faults: readonly HeadFault[];
}

interface TenantHeads {
  /** The newest register that this controller wrote or read. */
  register?: HeadRegister;
  opening?: Promise<void>;
  writing: Promise<void>;
  /** Heads of this controller's current run, and of earlier runs that are not completely in the register. */
  readonly live: Map<string, Head>;
  /** Name of the current run. */
  current?: string;
  isBehind: boolean;
  isAdopting: boolean;
  failure?: string;
  /** The run whose trail reports late heads, and the time of that report. It reports them at most once a day. */
  excused?: { readonly run: string; readonly timeMs: number };
}

interface Base {
  readonly revision: number;
  readonly register: HeadRegister;
}

/**
 * Seals the heads of each tenant's trail: at the first entries of a run, every `AUDIT_HEAD_INTERVAL_MS` with new
 * entries, and when the controller stops. A failed write is logged and repeated; the trail continues without it.
 */
export class Heading {
  readonly #options: HeadingOptions;
  readonly #tenants = new Map<string, TenantHeads>();
  readonly #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();
  #adopting: Promise<void> = Promise.resolve();

  constructor(options: HeadingOptions) {
    this.#options = options;
  }

  /** Number of tenants whose heads could not be stored. */
  get failing(): number {
    return [...this.#tenants.values()].filter(({ failure }) => failure !== undefined).length;
  }

  /**
   * Makes sure that a register exists. Called before the first entry of a controller, so that no entry of a run with
   * heads is older than the register.
   */
  open(tenant: string): Promise<void> {
    const state = this.#state(tenant);
    state.opening ??= this.#inOrder(state, () => this.#open(tenant, state)).catch((error: unknown) => {
      delete state.opening;
      throw error;
    });
    return state.opening;
  }

  /** Takes the entries of one run, in their order, after they are durable in the trail. */
  kept(tenant: string, records: readonly AuditRecord[]): void {
    const [state, run] = [this.#state(tenant), records[0]?.run];
    const head = run === undefined ? undefined : grown(state.live.get(run), records);
    if (head === undefined) return;
    const isNew = state.current !== head.run;
    state.live.set(head.run, head);
    state.current = head.run;
    state.isBehind = true;
    if (isNew) void this.#write(tenant);
  }

  /** Stored heads, merged with newer heads of this controller. */
  async of(tenant: string): Promise<KnownHeads> {
    const { store } = this.#options;
    const state = this.#tenants.get(tenant);
    const [live, seen] = [[...(state?.live.values() ?? [])], state?.register];
    const stored = await store.read(tenant);
    const { register, seal } = stored;
    const fault = faultOf(stored, seen);
    const noted = fault === undefined ? [] : [{ timeMs: this.#nowMs(), text: fault }];
    if (register === undefined) return { heads: merged(seen?.heads ?? [], live), faults: noted };
    const { heads, lost } = await store.readPages(tenant, register);
    const pages = lost.map((name) => ({
      timeMs: register.timeMs,
      text: `Page ${name} of the sealed heads was removed or changed.`,
    }));
    return {
      register,
      ...(seal !== undefined && { seal }),
      heads: merged(register.heads, heads, seen?.heads ?? [], live),
      faults: [...register.faults, ...noted, ...pages],
    };
  }

  start(): void {
    this.#running = this.#run();
    this.adopt("");
  }

  /** Creates heads for the runs of earlier versions in the background, unless they exist. */
  adopt(tenant: string): void {
    const state = this.#state(tenant);
    if (state.isAdopting || state.register?.adoptedMs !== undefined) return;
    state.isAdopting = true;
    this.#adopting = this.#adopting.then(() =>
      this.#adopt(tenant, state)
        .catch((error: unknown) => {
          const { log } = this.#options.runtime;
          log.warn({ err: error, tenant }, "earlier runs of the audit trail get their heads later");
        })
        .finally(() => (state.isAdopting = false)),
    );
  }

  /** Resolves when every started adoption has ended. */
  get adopted(): Promise<void> {
    return this.#adopting;
  }

  /** Stores the last heads; a failure is logged. */
  async close(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
    await this.#adopting;
    await this.write();
  }

  /** Seals the entries without a head, for every tenant; never throws. */
  async write(): Promise<void> {
    await mapLimited([...this.#tenants.keys()], AUDIT_HEAD_WRITES_MAX, (tenant) => this.#write(tenant));
  }

  leave(tenant: string): void {
    this.#tenants.delete(tenant);
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    for (;;) {
      await wait(this.#options.runtime.clock, AUDIT_HEAD_INTERVAL_MS, signal);
      if (signal.aborted) return;
      await this.write();
    }
  }

  /** Work for one tenant runs one after another. */
  #write(tenant: string): Promise<void> {
    const state = this.#state(tenant);
    return this.#inOrder(state, () => this.#writeBehind(tenant, state));
  }

  #inOrder(state: TenantHeads, work: () => Promise<void>): Promise<void> {
    const done = state.writing.then(() => CallDeadline.outside(work));
    state.writing = done.catch(() => undefined);
    return done;
  }

  async #writeBehind(tenant: string, state: TenantHeads): Promise<void> {
    if (!state.isBehind) return;
    state.isBehind = false;
    const live = [...state.live.values()];
    try {
      await this.#update(tenant, state, (register) => ({ ...register, heads: merged(register.heads, live) }));
      delete state.failure;
      for (const head of live)
        if (head.run !== state.current && state.live.get(head.run) === head) state.live.delete(head.run);
    } catch (error) {
      state.isBehind = true;
      if (this.#tenants.get(tenant) === state) this.#fail(tenant, state, error);
    }
  }

  #fail(tenant: string, state: TenantHeads, error: unknown): void {
    if (state.failure === undefined)
      this.#options.runtime.log.error(
        { err: error, tenant },
        "THE AUDIT TRAIL HAS NO NEW HEADS: they cannot be stored",
      );
    state.failure = errorText(error);
    const { current: run, excused } = state;
    if (run === undefined) return;
    if (excused?.run === run && this.#nowMs() - excused.timeMs < AUDIT_MARK_INTERVAL_MS) return;
    state.excused = { run, timeMs: this.#nowMs() };
    void this.#options.late(tenant);
  }

  async #open(tenant: string, state: TenantHeads): Promise<void> {
    const stored = await this.#options.store.read(tenant);
    if (stored.register !== undefined) state.register = stored.register;
    else if (stored.isLocked !== true) await this.#update(tenant, state, (register) => register);
  }

  async #adopt(tenant: string, state: TenantHeads): Promise<void> {
    if (this.#stopping.signal.aborted || this.#tenants.get(tenant) !== state) return;
    await this.open(tenant);
    if (state.register?.adoptedMs !== undefined) return;
    const [runs, adoptedMs] = [new OldRuns(), this.#nowMs()];
    for await (const records of this.#options.read(tenant)) {
      if (this.#stopping.signal.aborted) return;
      for (const record of records) runs.add(record, isPlain(record.hash));
    }
    const adopted = (found: HeadRegister): HeadRegister => {
      if (found.adoptedMs !== undefined) return found;
      const keyedSinceMs = Math.min(found.keyedSinceMs, runs.newestPlainMs);
      return { ...found, adoptedMs, keyedSinceMs, heads: merged(found.heads, runs.heads) };
    };
    await this.#inOrder(state, () => this.#update(tenant, state, adopted));
  }

  async #update(tenant: string, state: TenantHeads, change: (register: HeadRegister) => HeadRegister): Promise<void> {
    const { store, anchoring } = this.#options;
    for (let attempt = 0; attempt < AUDIT_HEAD_ATTEMPTS_MAX; attempt++) {
      const { revision, register } = await this.#base(tenant, state);
      const [changed, timeMs] = [change(register), this.#nowMs()];
      const heads = unexpired(changed.heads, timeMs);
      const next = { ...changed, heads, timeMs, version: register.version + 1 };
      const written = await store.write(tenant, revision, next);
      if (written === undefined) continue;
      state.register = written.register;
      anchoring?.kept({ timeMs, tenant, run: ANCHOR_OF_HEADS, sequence: next.version, hash: written.seal });
      return;
    }
    throw new AppError("unavailable", "Other controllers write the heads of the audit trail all the time.", {
      details: { limit: "AUDIT_HEAD_ATTEMPTS_MAX" },
    });
  }

  /**
   * The base of the next write: the stored register if it is valid. Otherwise the register that this controller
   * remembers, with the fault added.
   */
  async #base(tenant: string, state: TenantHeads): Promise<Base> {
    const stored = await this.#options.store.read(tenant);
    const fault = faultOf(stored, state.register);
    const { revision } = stored;
    if (stored.isLocked === true) throw new AppError("unavailable", fault ?? "");
    if (fault === undefined) return { revision, register: stored.register ?? (await this.#fresh(tenant)) };
    this.#options.runtime.log.error({ tenant, fault }, "THE HEADS OF THE AUDIT TRAIL WERE TAMPERED WITH");
    const register = state.register ?? (await this.#fresh(tenant));
    const faults = [...register.faults, { timeMs: this.#nowMs(), text: fault }].slice(0, AUDIT_HEAD_FAULTS_MAX);
    return { revision, register: { ...register, faults } };
  }

  /** A new register. If the trail is empty, there are no earlier runs to adopt. */
  async #fresh(tenant: string): Promise<HeadRegister> {
    const nowMs = this.#nowMs();
    const register = { version: 0, tenant, timeMs: nowMs, sinceMs: nowMs, keyedSinceMs: nowMs };
    const lists = { heads: [], pages: [], faults: [] };
    for await (const records of this.#options.read(tenant)) {
      const faults = records.some(({ run }) => isHeaded(run)) ? [{ timeMs: nowMs, text: REMOVED }] : [];
      if (records.length > 0) return { ...register, ...lists, faults };
    }
    return { ...register, ...lists, keyedSinceMs: 0, adoptedMs: nowMs };
  }

  #state(tenant: string): TenantHeads {
    let state = this.#tenants.get(tenant);
    if (state === undefined) {
      state = { writing: Promise.resolve(), live: new Map(), isBehind: false, isAdopting: false };
      this.#tenants.set(tenant, state);
    }
    return state;
  }

  #nowMs(): number {
    return this.#options.runtime.clock.nowMs();
  }
}

const REMOVED = "The sealed heads were removed.";

/** Reason why the stored register is not the last one written; `undefined` if it may be. */
function faultOf({ register, fault }: StoredRegister, seen: HeadRegister | undefined): string | undefined {
  if (fault !== undefined) return fault;
  if (register === undefined) return seen && REMOVED;
  if (seen === undefined || register.version >= seen.version) return undefined;
  return `The sealed heads were put back from version ${seen.version} to version ${register.version}.`;
}
