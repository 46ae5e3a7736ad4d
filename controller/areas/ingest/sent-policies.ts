import { AppError, isAppError } from "../../../common/errors.ts";
import {
  SENT_HOSTS_KNOWN_MAX,
  SENT_POLICIES_KEPT_MAX,
  SENT_POLICIES_MAX_BYTES,
  SENT_RACES_MAX,
} from "../../../common/limits.ts";
import { TIME_ZONE } from "../../../common/api/policies.ts";
import { findTimeZone } from "../../../common/times/index.ts";
import { setMember } from "../../../common/members.ts";
import type { Stores } from "../../store/engine.ts";
import { decodeStored, encodeJson } from "../../store/format.ts";
import type { DesiredPolicy, DesiredStateSource } from "../hosts/index.ts";

interface Dependencies {
  readonly stores: Stores;
  /** Source of the desired state of hosts. */
  readonly desired: DesiredStateSource;
}

/** Policies and rules that were sent to a host at any time, the latest last. The oldest are removed. */
interface Sent {
  readonly policies: readonly string[];
  readonly rules: readonly string[];
  /** Zone and rule of each policy that has a zone, by policy name. */
  readonly zones?: Readonly<Record<string, readonly [zone: string, rule: string]>>;
}

interface Known {
  sent: Sent;
  /** True if the store and the current policies were read since the last change. Then a missing name was never sent. */
  complete: boolean;
}

/** Names that an agent's entries use. */
export interface Asked {
  readonly policies: ReadonlySet<string>;
  readonly rules: ReadonlySet<string>;
}

const NOTHING: Sent = { policies: [], rules: [] };

/**
 * Records which policies were sent to each host, and which rules parse their records. The entry, `sent/<host>`, is
 * stored before the policies are sent. It outlives them, because an outbox may hold records of a policy that the host
 * no longer has.
 */
export class SentPolicies implements DesiredStateSource {
  readonly #stores: Stores;
  readonly #desired: DesiredStateSource;
  readonly #known = new Map<string, Known>();

  constructor({ stores, desired }: Dependencies) {
    this.#stores = stores;
    this.#desired = desired;
  }

  /** Records the desired state of the host as sent, and then returns it. */
  async desired(tenant: string, host: string): ReturnType<DesiredStateSource["desired"]> {
    const state = await this.#desired.desired(tenant, host);
    const known = this.#known.get(keyOf(tenant, host));
    const noted = known !== undefined && withPolicies(known.sent, state.policies) === known.sent;
    const sent = noted ? known.sent : await this.#note(tenant, host, state.policies);
    this.#remember(tenant, host, { sent, complete: false });
    return state;
  }

  /** Returns those of the names that were never sent to the host. */
  async missing(tenant: string, host: string, asked: Asked): Promise<Asked> {
    const known = this.#known.get(keyOf(tenant, host)) ?? { sent: NOTHING, complete: false };
    const missing = missingOf(asked, known.sent);
    if (known.complete || missing.policies.size + missing.rules.size === 0) return missing;
    await this.desired(tenant, host);
    const now = this.#known.get(keyOf(tenant, host));
    if (now) now.complete = true;
    return missingOf(asked, now?.sent ?? NOTHING);
  }

  /** Zones of the host's policies that need the rule, including former policies. */
  async zones(tenant: string, host: string, rule: string): Promise<Readonly<Record<string, string>>> {
    const key = keyOf(tenant, host);
    if (!this.#known.has(key)) await this.desired(tenant, host);
    const { zones = {} } = this.#known.get(key)?.sent ?? NOTHING;
    return Object.fromEntries(
      Object.entries(zones).flatMap(([policy, [zone, its]]) => (its === rule ? [[policy, zone]] : [])),
    );
  }

  /** True when a policy that is assigned to the host now needs the rule. */
  async needs(tenant: string, host: string, rule: string): Promise<boolean> {
    const { policies } = await this.#desired.desired(tenant, host);
    return policies.some(({ spec }) => ruleOf(spec) === rule);
  }

  /** Call at the start of a session: another controller may have sent the host more policies in the meantime. */
  look(tenant: string, host: string): void {
    this.#known.delete(keyOf(tenant, host));
  }

  /** Forgets a tenant that no longer exists. */
  leave(tenant: string): void {
    for (const key of this.#known.keys()) if (key.startsWith(keyOf(tenant, ""))) this.#known.delete(key);
  }

  async forget(tenant: string, host: string): Promise<void> {
    this.look(tenant, host);
    await (await this.#stores.tenant(tenant)).kv.delete(storeKey(host));
  }

  async #note(tenant: string, host: string, policies: readonly DesiredPolicy[]): Promise<Sent> {
    const { kv } = await this.#stores.tenant(tenant);
    for (let race = 0; race < SENT_RACES_MAX; race++) {
      const entry = await kv.get(storeKey(host));
      const before = entry ? decodeStored<Sent>(entry.value) : NOTHING;
      const sent = withPolicies(before, policies);
      if (sent === before) return before;
      const written = await orUnknown(kv.put(storeKey(host), encodeJson(sent), { ifRevision: entry?.revision ?? 0 }));
      if (written?.ok) return sent;
    }
    throw new AppError("unavailable", `The policies sent to ${host} could not be noted: others keep noting.`);
  }

  #remember(tenant: string, host: string, known: Known): void {
    const key = keyOf(tenant, host);
    this.#known.delete(key);
    const oldest = this.#known.keys().next();
    if (this.#known.size >= SENT_HOSTS_KNOWN_MAX && !oldest.done) this.#known.delete(oldest.value);
    this.#known.set(key, known);
  }
}

/** Returns undefined for an unknown outcome; the caller reads the entry again. */
async function orUnknown<T>(write: Promise<T>): Promise<T | undefined> {
  try {
    return await write;
  } catch (error) {
    if (isAppError(error, "unknown_outcome")) return undefined;
    throw error;
  }
}

/** Returns `before` itself if nothing is new. */
function withPolicies(before: Sent, policies: readonly DesiredPolicy[]): Sent {
  const names = policies.map(({ name }) => name);
  const rules = policies.flatMap(({ spec }) => ruleOf(spec) ?? []);
  const isNew =
    names.some((name) => !before.policies.includes(name)) || rules.some((rule) => !before.rules.includes(rule));
  const zones = zonesOf(before, policies);
  if (!isNew && JSON.stringify(zones) === JSON.stringify(before.zones ?? {})) return before;
  return bounded({ policies: latest(before.policies, names), rules: latest(before.rules, rules), zones });
}

/** Zones after these policies are sent. An assigned policy gets its current zone; a former one keeps its last zone. */
function zonesOf({ zones = {} }: Sent, policies: readonly DesiredPolicy[]): NonNullable<Sent["zones"]> {
  const after: Record<string, readonly [string, string]> = { ...zones };
  for (const { name, spec } of policies) {
    const zone = zoneOf(spec);
    if (zone === undefined) delete after[name];
    else setMember(after, name, [zone, ruleOf(spec) ?? ""]);
  }
  return after;
}

function latest(before: readonly string[], now: readonly string[]): readonly string[] {
  const present = new Set(now);
  return [...before.filter((one) => !present.has(one)), ...present].slice(-SENT_POLICIES_KEPT_MAX);
}

/** Removes the names that were sent longest ago until the value fits `SENT_POLICIES_MAX_BYTES`. */
function bounded(sent: Sent): Sent {
  let { policies, rules, zones = {} } = sent;
  const left = (): Sent => {
    const names = new Set(policies);
    zones = Object.fromEntries(Object.entries(zones).filter(([name]) => names.has(name)));
    return Object.keys(zones).length === 0 ? { policies, rules } : { policies, rules, zones };
  };
  while (Buffer.byteLength(JSON.stringify(left())) > SENT_POLICIES_MAX_BYTES) {
    policies = policies.slice(Math.ceil(policies.length / 8));
    rules = rules.slice(Math.ceil(rules.length / 8));
  }
  return left();
}

function ruleOf(spec: string): string | undefined {
  return textIn(JSON.parse(spec), "rule");
}

/** Zone that the policy names; `undefined` also for an unknown zone, in a policy stored before zones were checked. */
function zoneOf(spec: string): string | undefined {
  const value: unknown = JSON.parse(spec);
  const zone = textIn(typeof value === "object" && value !== null && "attrs" in value ? value.attrs : {}, TIME_ZONE);
  return zone === undefined || findTimeZone(zone) === undefined ? undefined : zone;
}

function textIn(value: unknown, member: string): string | undefined {
  const text: unknown = typeof value === "object" && value !== null ? Reflect.get(value, member) : undefined;
  return typeof text === "string" && text !== "" ? text : undefined;
}

function missingOf({ policies, rules }: Asked, sent: Sent): Asked {
  return { policies: without(policies, sent.policies), rules: without(rules, sent.rules) };
}

function without(asked: ReadonlySet<string>, sent: readonly string[]): ReadonlySet<string> {
  return new Set([...asked].filter((one) => !sent.includes(one)));
}

function keyOf(tenant: string, host: string): string {
  return `${tenant}/${host}`;
}

function storeKey(host: string): string {
  return `sent/${host}`;
}
