import { createHash } from "node:crypto";
import { encodeTime } from "ulid";
import { AUDIT_KEEP_SECONDS, CHANGE_BATCH_MAX } from "../../../common/limits.ts";
import type { Clock } from "../../../common/time.ts";
import type { Value } from "../../../common/value.ts";
import type { Stores } from "../../store/engine.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import type { StoredRecord } from "../../store/objects.ts";
import { columns, type InCommit, type ObjectRow, type Objects, type SystemClass } from "../objects/index.ts";
import { systemPrincipal, type Principal } from "../permissions/index.ts";
import type { AuditRecord } from "./chain.ts";
import { rowOf } from "./record-rows.ts";
import type { AuditTrail } from "./trail-writer.ts";
import { AUDIT_CLASS_PATH } from "./types.ts";

/** Class number of the installation's own trail; the system store has no classes. */
const PLATFORM_CID = 1;
const CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const DAY_MS = 24 * 3_600_000;

/** Only the audit area writes this class; rows are never changed or removed. */
export const AUDIT_CLASS: SystemClass = {
  path: AUDIT_CLASS_PATH,
  kind: "record",
  columns: [
    ...columns("varchar", {
      user: "User who called, or the name given at a sign-in; system: the platform itself",
      permission: "Permission that the call required, such as hosts:write; signin for sign-ins",
      action: "Method and path of the call, or the act in words, such as sign in",
      object: "Objects that it changed or tried to change, with commas; empty: see action",
      outcome: "ok, denied or failed",
      code: "Code of the error; ok or empty without one",
      remote: "Address that the call came from; empty if there is none",
      traceparent: "Trace of the call in the form of W3C Trace Context; empty if it had none",
      run: "Run of one controller that wrote the entry, without interruption",
    }),
    ...columns("bigint", { sequence: "Number of the entry in its run, from 1" }),
    ...columns("varchar", {
      previous: "Hash of the entry before it in its run; 64 zeros for the first one",
      hash: "Id of the key, a colon and the HMAC-SHA256 of the entry, hexadecimal",
    }),
  ],
  indexes: ["user", "permission", "outcome", "run", "object"],
  options: { ttlSeconds: AUDIT_KEEP_SECONDS, autosearch: false },
  guard: { reading: { permission: "audit:read" } },
};

export interface TrailDependencies {
  readonly clock: Clock;
  readonly stores: Stores;
  readonly objects: Objects;
  /** Name space of a tenant. */
  readonly ospaceOf: (tenant: string) => Promise<string>;
}

/**
 * Stores entries of a tenant as objects of its class `/system/audit`, and entries without a tenant in the system store.
 */
export class StoredTrail implements AuditTrail {
  readonly #dependencies: TrailDependencies;

  constructor(dependencies: TrailDependencies) {
    this.#dependencies = dependencies;
  }

  async append(tenant: string, records: readonly AuditRecord[]): Promise<void> {
    if (tenant === "") return this.#appendPlatform(records);
    const principal = await this.#principal(tenant);
    await this.#dependencies.objects.unrestricted.ingest(
      principal,
      principal.ospace + AUDIT_CLASS_PATH,
      records.map(rowOf),
    );
  }

  async appendInCommit(tenant: string, records: Omit<InCommit, "class">): Promise<void> {
    if (tenant === "") return;
    const principal = await this.#principal(tenant);
    await this.#dependencies.objects.unrestricted.ingestInCommit(principal, {
      class: principal.ospace + AUDIT_CLASS_PATH,
      records: (encode) => records.records(encode),
      failed: () => records.failed(),
      ended: (error) => records.ended(error),
    });
  }

  async *read(tenant: string): AsyncIterable<readonly AuditRecord[]> {
    if (tenant === "") return yield* this.#readPlatform();
    const principal = await this.#principal(tenant);
    const pages = this.#dependencies.objects.unrestricted.read(principal, {
      class: principal.ospace + AUDIT_CLASS_PATH,
      subtree: false,
      newestFirst: true,
    });
    for await (const rows of pages) yield rows.map((row) => recordOf(tenant, row));
  }

  async #principal(tenant: string): Promise<Principal> {
    return systemPrincipal(tenant, await this.#dependencies.ospaceOf(tenant), "");
  }

  async #appendPlatform(records: readonly AuditRecord[]): Promise<void> {
    const { objects } = await this.#dependencies.stores.system();
    await objects.append(records.map(platformRecord));
  }

  async *#readPlatform(): AsyncIterable<readonly AuditRecord[]> {
    const { objects } = await this.#dependencies.stores.system();
    const request = { cid: PLATFORM_CID, fromMs: 0, toMs: this.#dependencies.clock.nowMs() + DAY_MS };
    let cursor: string | undefined;
    do {
      const page = await objects.timeline(request, {
        limit: CHANGE_BATCH_MAX,
        ...(cursor !== undefined && { cursor }),
      });
      yield page.items.map((item) => decodeStored<AuditRecord>(item.value));
      cursor = page.cursor;
    } while (cursor !== undefined);
  }
}

function identityOf(record: AuditRecord): string {
  return `${record.run}/${String(record.sequence)}`;
}

function recordOf(tenant: string, row: ObjectRow): AuditRecord {
  const text = (name: string): string => textOf(row.values[name]);
  return {
    tenant,
    timeMs: row.vtimeMs,
    user: text("user"),
    permission: text("permission"),
    action: text("action"),
    object: text("object"),
    outcome: text("outcome") as AuditRecord["outcome"],
    code: text("code"),
    remote: text("remote"),
    traceparent: text("traceparent"),
    run: text("run"),
    sequence: Number(row.values.sequence),
    previous: text("previous"),
    hash: text("hash"),
  };
}

function textOf(value: Value | undefined): string {
  return typeof value === "string" ? value : "";
}

function platformRecord(record: AuditRecord): StoredRecord {
  return {
    cid: PLATFORM_CID,
    id: encodeTime(record.timeMs, 10) + tail(identityOf(record)),
    value: encodeJson(record),
    terms: [],
    expiresAtMs: record.timeMs + AUDIT_KEEP_SECONDS * 1_000,
  };
}

/** Sixteen characters of a ULID, derived from the identity: the same identity gives the same characters. */
function tail(identity: string): string {
  const digest = createHash("sha256").update(identity).digest();
  return [...digest.subarray(0, 16)].map((byte) => CROCKFORD[byte % 32]).join("");
}
