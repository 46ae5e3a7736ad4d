import {
  RECENT_POLICY_MAX_CHARACTERS,
  RECENT_RECORD_CHARACTERS,
  RECENT_RECORDS_MAX,
  RECENT_TENANT_MAX_CHARACTERS,
} from "../../../../common/limits.ts";
import type { RawRecord, Rule } from "../types.ts";

/** A raw record of an agent. Its id is the same on every controller, and when the record is sent again. */
export interface RecentRecord extends RawRecord {
  readonly id: string;
}

/** The latest raw records of a policy, the newest last. */
export interface RecentOfPolicy {
  /** Classes that the rule of these records may store rows in. Empty: the rule names none, or could not be used. */
  readonly classes: readonly string[];
  readonly records: readonly RecentRecord[];
  /** Number of records that were too long to be kept. */
  readonly leftOut: number;
}

/** Raw records of one entry. */
export interface TakenRecords {
  /** Identity of the entry. */
  readonly id: string;
  readonly policy: string;
  /** Absent: the rule of the policy is unusable. */
  readonly rule: Rule | undefined;
  readonly raw: readonly RawRecord[];
}

/** A raw record. Its id is made when `of` returns it. */
interface KeptRecord {
  /** Identity of its entry. */
  readonly entry: string;
  readonly ordinal: number;
  readonly raw: RawRecord;
}

interface Kept {
  readonly classes: readonly string[];
  readonly records: KeptRecord[];
  characters: number;
  leftOut: number;
}

interface OfTenant {
  /** By name; the policy that received records last is at the end. */
  readonly policies: Map<string, Kept>;
  weight: number;
}

const NONE: RecentOfPolicy = { classes: [], records: [], leftOut: 0 };

/**
 * The latest raw records of each policy, as samples for trials of rules. They are only in the memory of this
 * controller, so it has none after a start. The callers check who may see them.
 */
export class RecentRecords {
  readonly #tenants = new Map<string, OfTenant>();

  /** Adds the records of an entry, unless the entry is known: a batch may be repeated. */
  take(tenant: string, { id, policy, rule, raw }: TakenRecords): void {
    if (raw.length === 0) return;
    const tenantKept = this.#ofTenant(tenant);
    const kept = keptUnder(tenantKept, policy, rule === undefined ? [] : classesOf(rule));
    if (kept.records.some(({ entry }) => entry === id)) return;
    const before = weightOf(kept);
    const first = Math.max(0, raw.length - RECENT_RECORDS_MAX);
    for (const [at, record] of raw.slice(first).entries()) add(kept, { entry: id, ordinal: first + at, raw: record });
    trim(kept);
    tenantKept.weight += weightOf(kept) - before;
    this.#bound(tenantKept);
  }

  of(tenant: string, policy: string): RecentOfPolicy {
    const kept = this.#tenants.get(tenant)?.policies.get(policy);
    if (kept === undefined) return NONE;
    const { classes, leftOut } = kept;
    return {
      classes,
      records: kept.records.map(({ entry, ordinal, raw }) => ({ ...raw, id: `${entry}/${ordinal}` })),
      leftOut,
    };
  }

  /** Forgets a tenant that no longer exists. */
  leave(tenant: string): void {
    this.#tenants.delete(tenant);
  }

  #ofTenant(tenant: string): OfTenant {
    const known = this.#tenants.get(tenant) ?? { policies: new Map<string, Kept>(), weight: 0 };
    this.#tenants.set(tenant, known);
    return known;
  }

  #bound(tenant: OfTenant): void {
    for (const [policy, kept] of tenant.policies) {
      if (tenant.weight <= RECENT_TENANT_MAX_CHARACTERS) return;
      tenant.policies.delete(policy);
      tenant.weight -= weightOf(kept);
    }
  }
}

/** Drops the policy's records if its rule now names other classes, because other users may read these. */
function keptUnder(tenant: OfTenant, policy: string, classes: readonly string[]): Kept {
  const { policies } = tenant;
  const known = policies.get(policy);
  const isSame = known !== undefined && known.classes.join("\n") === classes.join("\n");
  if (known !== undefined && !isSame) tenant.weight -= weightOf(known);
  const kept = isSame ? known : { classes, records: [], characters: 0, leftOut: 0 };
  if (!isSame) tenant.weight += weightOf(kept);
  policies.delete(policy);
  policies.set(policy, kept);
  return kept;
}

function add(kept: Kept, record: KeptRecord): void {
  const characters = record.raw.text.length;
  if (characters > RECENT_POLICY_MAX_CHARACTERS) {
    kept.leftOut += 1;
    return;
  }
  kept.records.push(record);
  kept.characters += characters;
}

function trim(kept: Kept): void {
  let gone = 0;
  while (kept.records.length - gone > RECENT_RECORDS_MAX || kept.characters > RECENT_POLICY_MAX_CHARACTERS)
    kept.characters -= kept.records[gone++]?.raw.text.length ?? 0;
  kept.records.splice(0, gone);
}

/** Estimated size. Each record has a fixed share, and one more share is for the policy itself. */
function weightOf({ records, characters }: Kept): number {
  return characters + (records.length + 1) * RECENT_RECORD_CHARACTERS;
}

function classesOf({ class: own, supplements: { classes = {} } }: Rule): readonly string[] {
  return [...new Set([...(own === "" ? [] : [own]), ...Object.keys(classes)])].sort();
}
