import { type AppError, isAppError } from "../../../common/errors.ts";
import {
  CELL_MAX_BYTES,
  DAY_SECONDS,
  RULE_RETRIES_TTL_DAYS,
  RULE_RETRIES_WAITING_MAX,
} from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";
import type { Row } from "../../../common/value.ts";
import { Entry } from "../../../proto/gen/agent/v1/agent.ts";
import {
  columns,
  type ClassGuard,
  idFromColumns,
  type Objects,
  type SystemClass,
  type Unrestricted,
} from "../objects/index.ts";
import { systemPrincipal, type Principal } from "../permissions/index.ts";
import type { Rule, Rules } from "../rules/index.ts";
import { RetriesRoom } from "./retries-room.ts";
import type { PreparedBatch, RetryKeeper, Waiting } from "./types.ts";

/** Class of the records that wait for another run of their rule. Relative to the tenant's ospace. */
export const RETRY_PATH = "/system/ruleretry";

export function retryClass(objects: Unrestricted<"remove">): SystemClass {
  return {
    path: RETRY_PATH,
    columns: [
      ...columns("varchar", {
        record: "Host, stream of its agent, number of the entry and place in it, with slashes",
        rule: "Key of the rule that failed on the record",
        host: "Host that sent the record",
        source: "Path of the file with the record, or command",
      }),
      ...columns("timestamp", { due: "Time from which the record is tried again" }),
      ...columns("int", { attempts: "Number of times it was tried again so far" }),
      ...columns("text", {
        error: "Error of the last try",
        work: "The record and what it is tried again with, as JSON text",
      }),
    ],
    keys: ["record"],
    indexes: ["rule", "host"],
    options: { keyMode: "md5", ttlSeconds: RULE_RETRIES_TTL_DAYS * DAY_SECONDS },
    guard: guardOf(objects),
  };
}

/** MQL may remove a waiting record, which is then not tried again. */
function guardOf(objects: Unrestricted<"remove">): ClassGuard {
  return {
    reading: { permission: "rules:read" },
    permission: "rules:write",
    remove: ({ tenant, ospace, traceparent }, ids) =>
      objects.unrestricted.remove(
        systemPrincipal(tenant, ospace, traceparent),
        ids.map((id) => ({ id, class: ospace + RETRY_PATH })),
      ),
  };
}

/** A waiting record as read from the store. */
interface Found extends Omit<Waiting, "error"> {
  readonly dueMs: number;
}

interface Dependencies {
  readonly objects: Pick<Objects, "catalog"> & Unrestricted<"insert" | "remove" | "read" | "count">;
  readonly clock: Pick<Clock, "nowMs" | "monotonicMs">;
  /** Maximum number of waiting records of a tenant; `RULE_RETRIES_WAITING_MAX` if absent. */
  readonly waitingMax?: number;
}

interface Stored extends Pick<Waiting, "streamId" | "digest" | "ordinal" | "attempts"> {
  readonly writeUs?: number;
  /** The encoded message `Entry`, base64. */
  readonly entry: string;
}

/**
 * Stores records that wait for another try as objects. If a repeated batch or another controller stores the record
 * again, it is the same object. The rows of a retried record have the ids that the first try would have given them.
 */
export class RuleRetries implements RetryKeeper {
  readonly #with: Dependencies;
  readonly #room: RetriesRoom;

  constructor(dependencies: Dependencies) {
    this.#with = dependencies;
    const { objects, clock, waitingMax = RULE_RETRIES_WAITING_MAX } = dependencies;
    this.#room = new RetriesRoom({ objects, clock, path: RETRY_PATH, max: waitingMax });
  }

  async keep(principal: Principal, waiting: Waiting, intervalMs: number): Promise<boolean> {
    const { entry, host, error, attempts, writeUs, streamId, digest, ordinal } = waiting;
    const work = { streamId, digest, ordinal, attempts, ...(writeUs !== undefined && { writeUs }) };
    const whole = textOf(work, entry);
    const text = whole.length < CELL_MAX_BYTES ? whole : textOf(work, withoutRawBytes(entry));
    if (text.length >= CELL_MAX_BYTES) return false;
    const records = entry.body?.$case === "records" ? entry.body.value : undefined;
    const row: Row = {
      ...keyOf(waiting),
      rule: records?.rule ?? "",
      source: records?.source ?? "",
      host,
      error,
      attempts,
      due: Math.floor(this.#with.clock.nowMs() + intervalMs),
      work: text,
    };
    const insert = () => this.#with.objects.unrestricted.insert(principal, principal.ospace + RETRY_PATH, [row]);
    if (attempts === 0 && (await this.#room.within(principal, insert))) return true;
    if (attempts === 0 && !(await this.#isThere(principal, waiting))) return false;
    await insert();
    return true;
  }

  /**
   * Tries the due records. If a try fails because a store or thread is unavailable, the record waits for the next
   * round. Any other error ends this round and is thrown.
   */
  async run(principal: Principal, parts: { readonly rules: Rules; readonly write: Write }): Promise<void> {
    const { objects, clock } = this.#with;
    const path = principal.ospace + RETRY_PATH;
    const due: Found[] = [];
    for await (const page of objects.unrestricted.read(principal, { class: path, subtree: false }))
      for (const { values } of page) if (Number(values["due"]) <= clock.nowMs()) due.push(waitingOf(values));
    for (const waiting of due) {
      try {
        const kept = await parts.write(await batchOf(principal, waiting, parts.rules));
        if (kept === 0) await this.#remove(principal, waiting);
      } catch (error) {
        if (!isAppError(error, "unavailable", "deadline", "unknown_outcome", "limited")) throw error;
      }
    }
  }

  leave(tenant: string): void {
    this.#room.leave(tenant);
  }

  async #remove(principal: Principal, waiting: Found): Promise<void> {
    const place = await this.#placeOf(principal, waiting);
    if (place) await this.#with.objects.unrestricted.remove(principal, [place]);
  }

  /** True if the record already waits. A repeated batch needs no more room for it. */
  async #isThere(principal: Principal, waiting: Waiting): Promise<boolean> {
    const place = await this.#placeOf(principal, waiting);
    if (!place) return false;
    const request = { class: place.class, subtree: false, ids: [place.id] };
    for await (const page of this.#with.objects.unrestricted.read(principal, request)) if (page.length > 0) return true;
    return false;
  }

  async #placeOf(
    principal: Principal,
    of: Parameters<typeof keyOf>[0],
  ): Promise<{ id: string; class: string } | undefined> {
    const view = (await this.#with.objects.catalog(principal)).get(principal.ospace + RETRY_PATH);
    const id = view && idFromColumns(view, keyOf(of));
    return view && id !== undefined ? { id, class: view.path } : undefined;
  }
}

function textOf(work: Omit<Stored, "entry">, entry: Entry): string {
  const stored: Stored = { ...work, entry: Buffer.from(Entry.encode(entry).finish()).toString("base64") };
  return JSON.stringify(stored);
}

/** Removes the raw bytes, so that a long record fits; its text stays. */
function withoutRawBytes(entry: Entry): Entry {
  if (entry.body?.$case !== "records") return entry;
  const value = { ...entry.body.value, raw: Buffer.alloc(0), rawLengths: [] };
  return { ...entry, body: { $case: "records", value } };
}

/** Stores the batch. Returns the number of its records that wait for another try. */
type Write = (batch: PreparedBatch) => Promise<number>;

function keyOf({ host, streamId, entry, ordinal }: Pick<Waiting, "host" | "streamId" | "entry" | "ordinal">): Row {
  return { record: `${host}/${streamId}/${entry.sequence}/${ordinal}` };
}

function waitingOf({ host, work, due }: Row): Found {
  const { entry, writeUs, ...stored } = JSON.parse(String(work)) as Stored;
  return {
    ...stored,
    writeUs,
    host: String(host),
    entry: Entry.decode(Buffer.from(entry, "base64")),
    dueMs: Number(due),
  };
}

async function batchOf(principal: Principal, waiting: Found, rules: Rules): Promise<PreparedBatch> {
  const { entry, host, streamId, digest, ordinal, attempts, writeUs, dueMs } = waiting;
  const key = entry.body?.$case === "records" ? entry.body.value.rule : "";
  return {
    principal,
    source: { tenant: principal.tenant, host, streamId },
    entries: [entry],
    rules: new Map([[key, await ruleOf(rules.pinned(principal, key, digest))]]),
    foreign: NONE,
    foreignCommands: NONE,
    missing: 0,
    again: { ordinal, attempts: attempts + 1, dueMs },
    ...(writeUs !== undefined && { writeUs: new Map([[entry.sequence, writeUs]]) }),
  };
}

async function ruleOf(rule: Promise<Rule>): Promise<Rule | AppError> {
  try {
    return await rule;
  } catch (error) {
    if (isAppError(error, "not_found", "invalid", "syntax", "too_large")) return error;
    throw error;
  }
}

const NONE: ReadonlySet<string> = new Set();
