import { AppError, isAppError } from "../../../common/errors.ts";
import { READY_KEPT_MS } from "../../../common/limits.ts";
import { shared } from "../../../common/shared.ts";
import type { Clock } from "../../../common/time.ts";
import type { ShownSetting } from "../../settings/shown.ts";
import type { DataNode, Engine, LostTenant, Readiness } from "../../store/engine.ts";
import { requirePermission, type Principal } from "../permissions/index.ts";
import type { TenantService } from "../tenants/index.ts";

export interface ClusterDependencies {
  readonly clock: Clock;
  readonly engine: Pick<Engine, "nodes">;
  readonly tenants: Pick<TenantService, "ready" | "isFirst">;
  /** Without secrets. */
  readonly settings: readonly ShownSetting[];
}

/** Reports the parts of the installation and their state. */
export class ClusterService {
  readonly #with: ClusterDependencies;
  readonly #ready: () => Promise<Readiness>;

  constructor(dependencies: ClusterDependencies) {
    this.#with = dependencies;
    const { tenants, clock } = dependencies;
    this.#ready = shared(() => tenants.ready(), { clock, keptMs: READY_KEPT_MS });
  }

  async nodes(principal: Principal): Promise<readonly DataNode[]> {
    requirePermission(principal, "cluster:read");
    return this.#with.engine.nodes();
  }

  /** Settings of this controller. `AppError("denied")` for users of all tenants but the first, which manages the others. */
  async settings(principal: Principal): Promise<readonly ShownSetting[]> {
    requirePermission(principal, "cluster:read");
    const { tenants, settings } = this.#with;
    if (await tenants.isFirst(principal.tenant)) return settings;
    throw new AppError("denied", "Only the first tenant reads the settings of a controller.");
  }

  /**
   * Tenants whose keyspace is gone, at most `READY_KEPT_MS` old. Only the first tenant, which manages the others, gets
   * them. `undefined` for any other tenant, or if the state is unknown at the moment.
   */
  async lost(principal: Principal): Promise<readonly LostTenant[] | undefined> {
    requirePermission(principal, "cluster:read");
    const { tenants } = this.#with;
    if (!(await tenants.isFirst(principal.tenant))) return undefined;
    try {
      return (await this.#ready()).lost;
    } catch (error) {
      if (isAppError(error, "unavailable")) return undefined;
      throw error;
    }
  }
}
