import { AppError } from "../../../../common/errors.ts";
import {
  DAY_SECONDS,
  JOB_CONTEXT_NAME_MAX_BYTES,
  JOB_CONTEXT_READ_MAX_BYTES,
  JOB_CONTEXT_VALUE_MAX_BYTES,
  JOB_CONTEXT_VALUES_MAX,
  JOB_RUN_TTL_DAYS,
} from "../../../../common/limits.ts";
import { checkName } from "../../../../common/names.ts";
import type { Runtime } from "../../../runtime.ts";
import type { Stores } from "../../../store/engine.ts";
import { ContextStores, expiryOf } from "../../appcontext/index.ts";
import { requirePermission, type Principal } from "../../permissions/index.ts";

const limit = "JOB_CONTEXT_NAME_MAX_BYTES";
const ID = { what: "id of a context", maxBytes: JOB_CONTEXT_NAME_MAX_BYTES, limit };
const NAME = { what: "name in a context", maxBytes: JOB_CONTEXT_NAME_MAX_BYTES, limit };

export interface ContextValue {
  readonly name: string;
  readonly value: string;
  /** Time to live in seconds; 0 or absent: the value does not expire. */
  readonly ttlSeconds?: number;
}

export interface ContextDependencies {
  readonly stores: Stores;
  readonly runtime: Runtime;
  /** Maximum number of values of one context; `JOB_CONTEXT_VALUES_MAX` when absent. */
  readonly valuesMax?: number;
}

/**
 * Contexts of jobs: named texts that the parts of a run share. A context exists as soon as a value is set. If two
 * writers set the same name, the later write wins; other names do not change. An expired text is absent.
 */
export class JobContexts {
  readonly #texts: ContextStores;
  readonly #runtime: Runtime;
  readonly #valuesMax: number;

  constructor({ stores, runtime, valuesMax = JOB_CONTEXT_VALUES_MAX }: ContextDependencies) {
    this.#texts = new ContextStores({ stores, clock: runtime.clock, random: runtime.random }, "jobContext");
    this.#runtime = runtime;
    this.#valuesMax = valuesMax;
  }

  /**
   * The values whose names begin with `prefix`, sorted by name. `AppError("too_large")` if they have more than
   * `JOB_CONTEXT_READ_MAX_BYTES`.
   */
  async read(principal: Principal, id: string, prefix = ""): Promise<Readonly<Record<string, string>>> {
    requireContext(principal, "jobs:read", id);
    checkName(id, ID);
    const found: [name: string, value: string][] = [];
    let bytes = 0;
    for await (const page of (await this.#texts.of(principal.tenant)).items(id)) {
      for (const { id: name, text } of page) {
        if (!name.startsWith(prefix)) continue;
        bytes += Buffer.byteLength(name) + Buffer.byteLength(text);
        if (bytes > JOB_CONTEXT_READ_MAX_BYTES) throw tooMuch();
        found.push([name, text]);
      }
    }
    return Object.fromEntries(found.sort(([one], [other]) => (one < other ? -1 : 1)));
  }

  /**
   * Sets one value. `AppError("too_large")` for a new name if the context already has `JOB_CONTEXT_VALUES_MAX` values.
   * If a command of a run sets the value, it expires after `JOB_RUN_TTL_DAYS` at the latest.
   */
  async set(principal: Principal, id: string, { name, value, ttlSeconds }: ContextValue): Promise<void> {
    requireContext(principal, "jobs:run", id);
    checkName(id, ID);
    checkName(name, NAME);
    if (Buffer.byteLength(value) > JOB_CONTEXT_VALUE_MAX_BYTES)
      throw new AppError("too_large", `A value has at most ${JOB_CONTEXT_VALUE_MAX_BYTES} bytes.`, {
        details: { limit: "JOB_CONTEXT_VALUE_MAX_BYTES" },
      });
    const expiresAtMs = expiryOf(
      this.#runtime.clock,
      principal.context === undefined ? ttlSeconds : withRow(ttlSeconds),
    );
    const texts = await this.#texts.of(principal.tenant);
    if (!(await texts.item(id, name)) && (await texts.countItems(id, this.#valuesMax)) >= this.#valuesMax)
      throw tooMany(this.#valuesMax);
    await texts.putItem({ collection: id, id: name }, { text: value, expiresAtMs, ifThere: false });
  }

  /** Removes one value; a missing one is no error. */
  async remove(principal: Principal, id: string, name: string): Promise<void> {
    requireContext(principal, "jobs:run", id);
    checkName(id, ID);
    checkName(name, NAME);
    await (await this.#texts.of(principal.tenant)).removeItem(id, name);
  }

  /** Removes all values that exist when the call begins. Safe to repeat. */
  async clear(principal: Principal, id: string): Promise<void> {
    requireContext(principal, "jobs:run", id);
    checkName(id, ID);
    await (await this.#texts.of(principal.tenant)).removeItems(id);
  }
}

/** Checks the right to a context. A command of a run has no permissions, but may use the context of its own run. */
function requireContext(principal: Principal, permission: "jobs:read" | "jobs:run", id: string): void {
  if (principal.context === undefined) return requirePermission(principal, permission);
  if (principal.context !== id) throw new AppError("denied", `The run has the context ${principal.context} only.`);
}

function withRow(ttlSeconds = 0): number {
  const mostSeconds = JOB_RUN_TTL_DAYS * DAY_SECONDS;
  return ttlSeconds === 0 ? mostSeconds : Math.min(ttlSeconds, mostSeconds);
}

function tooMany(most: number): AppError {
  return new AppError("too_large", `A context has at most ${most} values: remove some, or clear it.`, {
    details: { limit: "JOB_CONTEXT_VALUES_MAX" },
  });
}

function tooMuch(): AppError {
  return new AppError(
    "too_large",
    `The context has more than ${JOB_CONTEXT_READ_MAX_BYTES} bytes: narrow it by a prefix.`,
    { details: { limit: "JOB_CONTEXT_READ_MAX_BYTES" } },
  );
}
