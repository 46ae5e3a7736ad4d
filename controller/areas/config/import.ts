import { readFile as readBytes } from "node:fs/promises";
import { mapLimited } from "../../../common/concurrency.ts";
import { AppError, isAppError } from "../../../common/errors.ts";
import {
  CONFIG_FAULTS_MAX,
  CONFIG_IMPORT_MAX_BYTES,
  CONFIG_PLAN_SHOWN_MAX,
  CONFIG_READS_AT_ONCE,
  CONFIG_SINGLE_READS_MAX,
} from "../../../common/limits.ts";
import type { Encoding } from "../../../common/text/encodings.ts";
import { refusing, textOf } from "../../../common/text/text-stream.ts";
import { requirePermission, type Principal } from "../permissions/index.ts";
import { Slices } from "../query/index.ts";
import { isSame, type KeyChange } from "./changes.ts";
import { readFile, refuseFaults, type ImportEntry } from "./file.ts";
import { anyKey, ROOT } from "./keys.ts";
import { MASK, outsideRule, visibilityOf, type ConfigVisibility } from "./rights.ts";
import type { ConfigDependencies } from "./service.ts";
import { sealContext, type Content, type Entry } from "./stored.ts";
import { conforming, TypedKeys } from "./typed.ts";
import { checkValue, contentOf, type Wanted } from "./values.ts";

export interface ImportRequest {
  /** Path of the uploaded file. */
  readonly path: string;
  readonly size: number;
  /** Base of relative keys. Whole keys outside of it are moved below it. */
  readonly key?: string | undefined;
  /** True: only reports the effects of an import. */
  readonly plan: boolean;
  /** Encoding of the file; UTF-8 when absent. */
  readonly encoding?: Encoding | undefined;
  readonly signal?: AbortSignal;
}

/** Work units of the check of one entry. One check takes as long as reading this many rows. */
const CHECK_WORK = 4;

type Action = "create" | "update" | "unchanged" | "skip";

interface Planned {
  readonly key: string;
  readonly action: Action;
  readonly change?: KeyChange;
  readonly warnings: readonly string[];
}

/** The result of an import, or of its plan. */
export interface ImportReport {
  readonly total: number;
  readonly created: number;
  readonly updated: number;
  readonly unchanged: number;
  /** Number of entries that have expired, and of masked secrets that are not stored here. `warnings` name them. */
  readonly skipped: number;
  /** Only in a plan: at most `CONFIG_PLAN_SHOWN_MAX` entries. Those that change something come first. */
  readonly changes?: readonly { readonly key: string; readonly action: Action }[];
  readonly warnings: readonly string[];
}

/**
 * Imports files. A file is read and checked as a whole, against the present entries and the caller's rights. Then all
 * of its entries are written, or none. Keys that the file does not contain stay unchanged.
 */
export class ConfigImport {
  readonly #with: ConfigDependencies;

  constructor(dependencies: ConfigDependencies) {
    this.#with = dependencies;
  }

  async run(principal: Principal, request: ImportRequest): Promise<ImportReport> {
    requirePermission(principal, "config:write");
    const { clock } = this.#with.runtime;
    const slices = new Slices({ tenant: principal.tenant, clock, signal: request.signal });
    const planned = await this.#plan(principal, await this.#read(principal, request, slices), slices);
    if (!request.plan)
      await this.#with.changes.make(
        principal,
        planned.flatMap(({ change }) => (change ? [change] : [])),
      );
    return reportOf(planned, request.plan, slices);
  }

  async #read(
    { ospace }: Principal,
    { path, size, key, encoding }: ImportRequest,
    slices: Slices,
  ): Promise<readonly ImportEntry[]> {
    if (size > CONFIG_IMPORT_MAX_BYTES)
      throw new AppError("too_large", `An import has at most ${CONFIG_IMPORT_MAX_BYTES} bytes: make it by parts.`);
    const under = key === undefined || key === "" ? undefined : anyKey(key);
    const text = textOf(await readBytes(path), refusing("The upload"), encoding);
    return readFile(text, { ospace, under, nowMs: this.#with.runtime.clock.nowMs(), slices });
  }

  async #plan(principal: Principal, entries: readonly ImportEntry[], slices: Slices): Promise<readonly Planned[]> {
    const { objects, owners, runtime } = this.#with;
    const visibility = await visibilityOf(principal, { objects, owners, clock: runtime.clock });
    visibility.requireWriting(principal.ospace);
    const found = await this.#found(principal.tenant, entries, slices);
    const typed = new TypedKeys(this.#with.entries, principal);
    if (entries.length > CONFIG_SINGLE_READS_MAX) await typed.preload();
    const planned: Planned[] = [];
    const faults: string[] = [];
    for (const entry of entries) {
      if (slices.isOver(CHECK_WORK)) await slices.pause();
      try {
        planned.push(await this.#planOne({ principal, visibility, typed, entry, found: found.get(entry.key) }));
      } catch (error) {
        if (!isAppError(error, "invalid", "syntax", "too_large", "not_found", "unsupported")) throw error;
        faults.push(`${entry.key}: ${error.message}`);
        if (faults.length >= CONFIG_FAULTS_MAX) break;
      }
    }
    refuseFaults(faults);
    return planned;
  }

  async #planOne({
    principal,
    visibility,
    typed,
    entry,
    found,
  }: {
    readonly principal: Principal;
    readonly visibility: ConfigVisibility;
    readonly typed: TypedKeys;
    readonly entry: ImportEntry;
    readonly found: Entry | undefined;
  }): Promise<Planned> {
    const { key, expiresAtMs } = entry;
    visibility.requireWriting(key);
    if (found && !visibility.sees(found)) throw outsideRule(principal, key);
    const skipped = this.#reasonToSkip(entry, found);
    if (skipped !== undefined) return { key, action: "skip", warnings: [skipped] };
    const warnings = await checkValue(principal, visibility, entry);
    const wanted = conforming(await typed.of(key), entry, found);
    const content = {
      ...this.#content(principal.tenant, wanted, found),
      ...(expiresAtMs !== undefined && { expiresAtMs }),
    };
    visibility.requireSeenAfter({ key, found, content });
    if (found && isSame(found, content)) return { key, action: "unchanged", warnings };
    return { key, action: found ? "update" : "create", change: { key, ...content }, warnings };
  }

  #reasonToSkip({ key, value, secret, expiresAtMs }: ImportEntry, found: Entry | undefined): string | undefined {
    if (expiresAtMs !== undefined && expiresAtMs <= this.#with.runtime.clock.nowMs())
      return `${key} has expired: left out.`;
    if (secret && value === MASK && found?.sealed === undefined)
      return `${key} is a secret that the file does not hold and that is not stored here: left out.`;
    return undefined;
  }

  /** The content to store. An unchanged secret keeps its sealed form. */
  #content(tenant: string, entry: Wanted, found: Entry | undefined): Content {
    const { secrets } = this.#with;
    const isKept =
      found?.sealed !== undefined &&
      entry.secret !== false &&
      secrets.open(found.sealed, sealContext(tenant, entry.key)) === entry.value;
    return isKept ? { sealed: found.sealed } : contentOf(entry, { tenant, found, secrets });
  }

  /**
   * The stored entries of these keys. Reads a few keys one by one. For many keys, reads all entries under their longest
   * common prefix.
   */
  async #found(tenant: string, wanted: readonly ImportEntry[], slices: Slices): Promise<ReadonlyMap<string, Entry>> {
    const { entries } = this.#with;
    const found = new Map<string, Entry>();
    if (wanted.length <= CONFIG_SINGLE_READS_MAX) {
      const read = await mapLimited(wanted, CONFIG_READS_AT_ONCE, ({ key }) => entries.get(tenant, key));
      for (const entry of read) if (entry) found.set(entry.key, entry);
      return found;
    }
    const asked = new Set<string>();
    let start = wanted[0]?.key ?? ROOT;
    for (const { key } of wanted) {
      if (slices.isOver()) await slices.pause();
      asked.add(key);
      while (!key.startsWith(start)) start = start.slice(0, -1);
    }
    for await (const entry of entries.under(tenant, start)) if (asked.has(entry.key)) found.set(entry.key, entry);
    return found;
  }
}

const RANK = { create: 0, update: 0, skip: 1, unchanged: 2 } as const satisfies Readonly<Record<Action, number>>;

type Shown = NonNullable<ImportReport["changes"]>[number];

/**
 * Counts the planned actions. In a plan, also lists entries: first those that change something, then skipped ones, then
 * unchanged ones.
 */
async function reportOf(planned: readonly Planned[], isPlan: boolean, slices: Slices): Promise<ImportReport> {
  const counts: Record<Action, number> = { create: 0, update: 0, skip: 0, unchanged: 0 };
  const shown: readonly [Shown[], Shown[], Shown[]] = [[], [], []];
  const warnings: string[] = [];
  for (const { key, action, warnings: own } of planned) {
    if (slices.isOver()) await slices.pause();
    counts[action]++;
    const alike = shown[RANK[action]];
    if (alike.length < CONFIG_PLAN_SHOWN_MAX) alike.push({ key, action });
    warnings.push(...own);
  }
  return {
    total: planned.length,
    created: counts.create,
    updated: counts.update,
    unchanged: counts.unchanged,
    skipped: counts.skip,
    ...(isPlan && { changes: shown.flat().slice(0, CONFIG_PLAN_SHOWN_MAX) }),
    warnings,
  };
}
