import { AppError } from "../../../common/errors.ts";
import { TENANT_CALLS_IN_FLIGHT_MAX } from "../../../common/limits.ts";
import type { Growth } from "../objects/index.ts";
import type { Tenant } from "./types.ts";

/** Limits of a tenant; `Infinity` is no limit. */
export type Quota = Growth;
export type Measure = keyof Quota;

const MEMBERS = { objects: "max_objects", bytes: "max_bytes" } as const;
const MEASURES = ["objects", "bytes"] as const;
const COUNTED = { agents: "max_agents", calls: "max_calls" } as const;
const AMOUNT = /^(0|[1-9]\d{0,14})$/;
const NONE: Quota = { objects: Infinity, bytes: Infinity };

export function quotaOf(config: Tenant["config"]): Quota {
  if (config?.[MEMBERS.objects] === undefined && config?.[MEMBERS.bytes] === undefined) return NONE;
  return { objects: amount(config[MEMBERS.objects]), bytes: amount(config[MEMBERS.bytes]) };
}

export function isLimit(quota: Quota): boolean {
  return quota.objects < Infinity || quota.bytes < Infinity;
}

/** Limits on hosts with an agent and on concurrent calls, in addition to those of the licence and the platform. */
export interface CountQuota {
  readonly agents: number;
  /** At least 1; with 0 the tenant could not be used. */
  readonly calls: number;
}

export function countQuotaOf(config: Tenant["config"]): CountQuota {
  return { agents: count(config?.[COUNTED.agents]), calls: Math.max(1, count(config?.[COUNTED.calls])) };
}

/** Throws `AppError("invalid")`, which names the member. An empty text is no limit. */
export function checkQuota(config: NonNullable<Tenant["config"]>): void {
  checkCalls(config[COUNTED.calls]);
  for (const member of [...Object.values(MEMBERS), COUNTED.agents]) {
    const text = config[member];
    if (text === undefined || text === "" || AMOUNT.test(text)) continue;
    throw new AppError("invalid", `config.${member} must be a whole number of at most 15 digits, or empty.`, {
      details: { fields: [`config.${member}`] },
    });
  }
}

/** The measures that exceed the quota. */
export function beyond(has: Growth, quota: Quota): readonly Measure[] {
  return MEASURES.filter((measure) => has[measure] > quota[measure]);
}

/** The first measure that grows beyond the quota. A measure that does not grow is never refused. */
export function refusedOf(growth: Growth, has: Growth, quota: Quota): Measure | undefined {
  return MEASURES.find((measure) => growth[measure] > 0 && has[measure] + growth[measure] > quota[measure]);
}

export function full(tenant: string, measure: Measure, { has, quota }: { has: Growth; quota: Quota }): AppError {
  return new AppError(
    "too_large",
    `The tenant ${tenant} may have ${quota[measure]} ${measure} and has about ${has[measure]}: there is no room for more. Remove some, or have an administrator of the first tenant raise config.${MEMBERS[measure]} of ${tenant}.`,
    { details: { limit: MEMBERS[measure], max: quota[measure], used: has[measure] } },
  );
}

function checkCalls(text = ""): void {
  if (text === "" || (AMOUNT.test(text) && Number(text) >= 1 && Number(text) <= TENANT_CALLS_IN_FLIGHT_MAX)) return;
  const member = `config.${COUNTED.calls}`;
  throw new AppError("invalid", `${member} must be a whole number from 1 to ${TENANT_CALLS_IN_FLIGHT_MAX}, or empty.`, {
    details: { fields: [member], limit: "TENANT_CALLS_IN_FLIGHT_MAX" },
  });
}

/** A text that is no number was stored before this was a quota, and means no limit. */
function count(text = ""): number {
  return AMOUNT.test(text) ? Number(text) : Infinity;
}

function amount(text: string | undefined): number {
  return text === undefined || text === "" ? Infinity : Number(text);
}
