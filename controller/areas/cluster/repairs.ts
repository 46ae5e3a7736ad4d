import { errorText } from "../../../common/errors.ts";
import { REPAIR_DUE_MS, REPAIR_LOOK_EVERY_MS, REPAIR_OF_DERIVED_DUE_MS } from "../../../common/limits.ts";
import type { Runtime } from "../../runtime.ts";
import type { Stores } from "../../store/engine.ts";
import type { TableRepair } from "../../store/scrub.ts";
import { requirePermission, type Principal } from "../permissions/index.ts";

export interface RepairDependencies {
  readonly stores: Stores;
  readonly runtime: Runtime;
  /** Creation time of the tenant: the first repair is due relative to it. */
  readonly bornMs: (tenant: string) => Promise<number>;
}

export interface RepairState extends TableRepair {
  /** Required interval between repairs. */
  readonly everyMs: number;
  readonly due: boolean;
}

interface Looked {
  readonly atMs: number;
  /** Earliest time at which one of its tables is due; infinite if no table is replicated on several nodes. */
  readonly dueMs: number;
}

/**
 * Reports whether the tables of a tenant are repaired in time, so that all copies are equal. The operator runs the
 * repair on the nodes; a controller never does.
 */
export class RepairService {
  readonly #with: RepairDependencies;
  readonly #looked = new Map<string, Looked>();

  constructor(dependencies: RepairDependencies) {
    this.#with = dependencies;
  }

  /** Empty if each row is on one node only. `AppError("unavailable")` if the history of repairs cannot be read. */
  async status(principal: Principal): Promise<readonly RepairState[]> {
    requirePermission(principal, "cluster:read");
    const { bornMs, runtime } = this.#with;
    const nowMs = runtime.clock.nowMs();
    const madeMs = await bornMs(principal.tenant);
    return (await this.#repairs(principal.tenant)).map((one) => ({
      ...one,
      everyMs: everyMs(one),
      due: dueMs(one, madeMs) < nowMs,
    }));
  }

  /** See `Area.maintain`. */
  async maintain(tenant: string): Promise<void> {
    const { bornMs, runtime } = this.#with;
    const atMs = runtime.clock.monotonicMs();
    const last = this.#looked.get(tenant);
    if (last !== undefined && atMs - last.atMs < REPAIR_LOOK_EVERY_MS) return;
    try {
      const madeMs = await bornMs(tenant);
      const due = (await this.#repairs(tenant)).map((one) => dueMs(one, madeMs));
      const first = Math.min(Infinity, ...due);
      this.#looked.set(tenant, { atMs, dueMs: first });
      if (first < runtime.clock.nowMs())
        runtime.log.warn({ tenant }, "Cassandra's tables are due for a repair: see `odp repairs`");
    } catch (error) {
      // Do not fail the rest of the maintenance. An account without the right to read the history is reported only once
      // per `REPAIR_LOOK_EVERY_MS`.
      this.#looked.set(tenant, { atMs, dueMs: last?.dueMs ?? Infinity });
      runtime.log.warn({ tenant, reason: errorText(error) }, "when tables were repaired is not to be known");
    }
  }

  leave(tenant: string): void {
    this.#looked.delete(tenant);
  }

  /** Time since the longest overdue table was due, as of the last maintenance; 0 if none is due. */
  get overdueMs(): number {
    const nowMs = this.#with.runtime.clock.nowMs();
    return Math.max(0, ...[...this.#looked.values()].map(({ dueMs: due }) => nowMs - due));
  }

  async #repairs(tenant: string): Promise<readonly TableRepair[]> {
    return (await this.#with.stores.tenant(tenant)).scrub.repairs();
  }
}

function everyMs({ isDerived }: TableRepair): number {
  return isDerived ? REPAIR_OF_DERIVED_DUE_MS : REPAIR_DUE_MS;
}

function dueMs(repair: TableRepair, madeMs: number): number {
  return (repair.repairedMs ?? madeMs) + everyMs(repair);
}
