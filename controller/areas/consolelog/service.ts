import { AppError } from "../../../common/errors.ts";
import { parseObjectId, ULID_TIME_MAX_MS } from "../../../common/ids.ts";
import {
  CHANGE_BATCH_MAX,
  CONSOLE_LOG_NAME_MAX_CHARACTERS,
  CONSOLE_LOG_PAGE_ROWS,
  CONSOLE_LOG_TTL_DAYS,
  DAY_SECONDS,
} from "../../../common/limits.ts";
import { beginningOf } from "../../../common/text/cut.ts";
import type { Clock } from "../../../common/time.ts";
import { AppendNotifier, AppendSignal } from "../../store/tail.ts";
import type { ObjectRow, Objects, Pushdown, Unrestricted } from "../objects/index.ts";
import { byRulesAlone, classAccess, requirePermission, systemPrincipal, type Principal } from "../permissions/index.ts";
import { consoleLogPath, type ConsoleLogKind } from "./classes.ts";
import { readLevels } from "./levels.ts";
import { oldest, type TimeRange } from "./oldest.ts";
import { baseTimeMs, BEGINNING, nextPosition, readPosition, writePosition, type Position } from "./position.ts";
import { keptRow } from "../../turns/well-formed.ts";

/** Selects a log and entries of it. */
export interface LogSelection {
  readonly kind: ConsoleLogKind;
  readonly name: string;
  /** Numbers or names; empty: all levels. */
  readonly levels: readonly string[];
  /** Milliseconds since 1970; both ends are included. */
  readonly mintime?: number;
  readonly maxtime?: number;
}

export interface LogEntry {
  /** `edtime` and `sttime`: milliseconds since 1970. */
  readonly edtime: number;
  readonly sttime?: number;
  readonly level?: number;
  readonly msg?: string;
  /** This member and those below occur only with the kind `rule`. */
  readonly host?: string;
  readonly source?: string;
  readonly raw?: string;
  readonly count?: number;
}

export interface LogPage {
  /** Oldest first. */
  readonly logs: LogEntry[];
  readonly position: string;
}

interface ReadOptions {
  readonly limit?: number;
  /** Absent: read from the oldest entry on. */
  readonly position?: string;
  readonly signal?: AbortSignal;
}

export interface LogReader {
  readonly position?: string;
  readonly signal: AbortSignal;
  /** See `Call`. */
  readonly present: () => Promise<Principal | undefined>;
}

/** The entries of one run. */
export interface Said {
  readonly kind: ConsoleLogKind;
  readonly name: string;
  /** Unique id of the run. */
  readonly run: string;
  readonly beganMs: number;
  readonly entries: readonly SaidEntry[];
}

export interface SaidEntry {
  readonly level: number;
  readonly msg: string;
  readonly timeMs: number;
  /** The raw record or records that an entry of the kind `rule` concerns. */
  readonly about?: Pick<LogEntry, "source" | "raw" | "count">;
}

interface Dependencies {
  readonly objects: Pick<Objects, "visible"> & Unrestricted<"ingest" | "remove">;
  readonly clock: Clock;
}

/** A validated selection and the position to read from. */
interface Reading {
  readonly kind: ConsoleLogKind;
  readonly name: string;
  readonly levels: ReadonlySet<number>;
  readonly fromMs: number;
  readonly toMs: number;
  /** Identifies the selection: a position is valid only for the same selection. */
  readonly asked: string;
  readonly position: Position;
}

/**
 * Console logs of rules, scripts and triggers: rows of the classes `/consolelog/<kind>`, read with the caller's rights.
 */
export class ConsoleLogService {
  readonly #objects: Dependencies["objects"];
  readonly #clock: Clock;
  readonly #appends = new AppendNotifier();

  constructor({ objects, clock }: Dependencies) {
    this.#objects = objects;
    this.#clock = clock;
  }

  /**
   * Entries after a position, oldest first. `AppError("invalid")` for an unknown level or a position of another
   * selection. `AppError("denied")` when the principal may not read the class of the log.
   */
  async read(principal: Principal, selection: LogSelection, options: ReadOptions = {}): Promise<LogPage> {
    requirePermission(principal, "consolelog:read");
    const reading = readingOf(principal, selection, options.position);
    const { page } = await this.#page(principal, reading, options);
    return page;
  }

  /**
   * Yields the entries after a position, then new entries as any controller stores them, until the signal fires. Throws
   * the errors of `read` before anything is read; also throws later when rights change.
   */
  async follow(principal: Principal, selection: LogSelection, reader: LogReader): Promise<AsyncGenerator<LogPage>> {
    requirePermission(principal, "consolelog:read");
    const reading = readingOf(principal, selection, reader.position);
    readablePath(principal, selection.kind);
    return this.#pages(principal.tenant, reading, reader);
  }

  /** Removes all entries of that name that the principal sees; returns their number. */
  async remove(principal: Principal, { kind, name }: Pick<LogSelection, "kind" | "name">, signal?: AbortSignal) {
    requirePermission(principal, "consolelog:write");
    return this.#remove(principal, {
      kind,
      where: [named(name)],
      isMeant: (row) => row.values["name"] === name,
      signal,
    });
  }

  /** Removes all entries of that kind that the principal sees; returns their number. */
  async truncate(principal: Principal, kind: ConsoleLogKind, signal?: AbortSignal): Promise<number> {
    requirePermission(principal, "consolelog:write");
    return this.#remove(principal, { kind, where: [], isMeant: () => true, signal });
  }

  /** Stores the entries of a rule, script or trigger in their order, and wakes followers. */
  async append(of: Pick<Principal, "tenant" | "ospace" | "traceparent">, { kind, name, run, beganMs, entries }: Said) {
    if (entries.length === 0) return;
    const { tenant, ospace, traceparent } = of;
    const common = { name: beginningOf(name, CONSOLE_LOG_NAME_MAX_CHARACTERS), sttime: beganMs };
    const records = entries.map(({ level, msg, timeMs, about }, ordinal) => ({
      values: keptRow({ ...common, level, msg, edtime: timeMs, ...about }),
      timeMs,
      identity: run,
      ordinal,
      isNew: true,
    }));
    await this.#objects.unrestricted.ingest(
      systemPrincipal(tenant, ospace, traceparent),
      `${ospace}${consoleLogPath(kind)}`,
      records,
    );
    this.stored(tenant, kind);
  }

  /** Wakes followers after this controller has stored entries. */
  stored(tenant: string, kind: ConsoleLogKind): void {
    this.#appends.tell(`${tenant}/${kind}`);
  }

  async *#pages(tenant: string, first: Reading, { signal, present }: LogReader): AsyncGenerator<LogPage> {
    const appended = new AppendSignal(this.#clock);
    const leave = this.#appends.on(`${tenant}/${first.kind}`, () => appended.set());
    try {
      for (let reading = first; !signal.aborted; ) {
        const now = await present();
        if (now === undefined) throw new AppError("denied", "The user is signed out, or lost the permission.");
        // Reset before the read, so that an entry stored after the read wakes this follower.
        appended.reset();
        const { page, position } = await this.#page(now, reading, {});
        reading = { ...reading, position };
        if (page.logs.length > 0) yield page;
        else await appended.settled(signal);
      }
    } finally {
      leave();
    }
  }

  async #page(principal: Principal, reading: Reading, { limit = CONSOLE_LOG_PAGE_ROWS, signal }: ReadOptions) {
    const { levels, asked, name } = reading;
    const path = readablePath(principal, reading.kind);
    const nowMs = this.#clock.nowMs();
    const told = new Set(reading.position.told);
    const isNew = (row: ObjectRow): boolean =>
      row.values["name"] === name &&
      levels.has(Number(row.values["level"])) &&
      ulidOfRow(row) > reading.position.base &&
      !told.has(ulidOfRow(row));
    const rows = await oldest({
      limit,
      nowMs,
      fromMs: Math.max(
        reading.fromMs,
        baseTimeMs(reading.position),
        nowMs - CONSOLE_LOG_TTL_DAYS * DAY_SECONDS * 1_000,
      ),
      toMs: reading.toMs,
      read: (range) => this.#rows(principal, { path, reading, range, limit, signal, isNew }),
    });
    const step = { from: reading.position, ids: rows.map(ulidOfRow), isFull: rows.length >= limit, nowMs };
    const position = nextPosition(step);
    const logs = rows.map(entryOf);
    return { position, page: { logs, position: writePosition(position, asked) } };
  }

  #rows(principal: Principal, window: Window): AsyncIterable<readonly ObjectRow[]> {
    const { path, reading, range, limit, signal, isNew } = window;
    const [only, ...others] = reading.levels;
    const where: Pushdown[] = [
      named(reading.name),
      { kind: "range", column: "vtime", from: range.fromMs, to: range.toMs },
      // Several levels would need one index lookup each, so they are filtered afterwards.
      ...(only !== undefined && others.length === 0
        ? [{ kind: "equals", column: "level", values: [only] } as const]
        : []),
    ];
    return this.#objects.visible.read(byRulesAlone(principal, "consolelog:read"), {
      class: path,
      subtree: false,
      where,
      selects: isNew,
      newestFirst: true,
      expected: limit + 1,
      ...(signal && { signal }),
    });
  }

  async #remove(principal: Principal, { kind, where, isMeant, signal }: Removal): Promise<number> {
    const path = readablePath(principal, kind);
    // The permission suffices: a principal who has it needs no right to write the class.
    const system = systemPrincipal(principal.tenant, principal.ospace, principal.traceparent);
    const request = { class: path, subtree: false, where, selects: isMeant, expected: CHANGE_BATCH_MAX };
    const pages = this.#objects.visible.read(byRulesAlone(principal, "consolelog:read"), {
      ...request,
      ...(signal && { signal }),
    });
    let removed = 0;
    for await (const page of pages)
      removed += await this.#objects.unrestricted.remove(
        system,
        page.map(({ id }) => ({ id, class: path })),
      );
    return removed;
  }
}

/** The class of these logs. `AppError("denied")` when the principal may not read it. */
function readablePath(principal: Principal, kind: ConsoleLogKind): string {
  const path = `${principal.ospace}${consoleLogPath(kind)}`;
  if (!classAccess(principal, path).readable)
    throw new AppError("denied", `${principal.user} may not read ${path}.`, { details: { class: path } });
  return path;
}

interface Window {
  readonly path: string;
  readonly reading: Reading;
  readonly range: TimeRange;
  readonly limit: number;
  readonly signal: AbortSignal | undefined;
  readonly isNew: (row: ObjectRow) => boolean;
}

interface Removal {
  readonly kind: ConsoleLogKind;
  readonly where: readonly Pushdown[];
  readonly isMeant: (row: ObjectRow) => boolean;
  readonly signal: AbortSignal | undefined;
}

function readingOf(principal: Principal, selection: LogSelection, position: string | undefined): Reading {
  const { kind, name, mintime = 0, maxtime = ULID_TIME_MAX_MS } = selection;
  const levels = readLevels(selection.levels);
  const asked = JSON.stringify([principal.tenant, kind, name, levels, mintime, maxtime]);
  return {
    kind,
    name,
    levels: new Set(levels),
    fromMs: mintime,
    toMs: maxtime,
    asked,
    position: position === undefined || position === "" ? BEGINNING : readPosition(position, asked),
  };
}

function named(name: string): Pushdown {
  return { kind: "equals", column: "name", values: [name] };
}

function ulidOfRow({ id }: ObjectRow): string {
  return parseObjectId(id)?.key ?? "";
}

const SHOWN = ["sttime", "level", "msg", "host", "source", "raw", "count"] as const;

/** Omits members that are hidden from the reader, and members that the log does not have. */
function entryOf({ values, vtimeMs }: ObjectRow): LogEntry {
  const shown = SHOWN.flatMap((name) => (values[name] === undefined ? [] : [[name, values[name]]]));
  return { edtime: vtimeMs, ...(Object.fromEntries(shown) as Partial<LogEntry>) };
}
