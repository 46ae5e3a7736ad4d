import { isAppError } from "../../../common/errors.ts";
import type { DataNode, Engine, LostTenant } from "../../store/engine.ts";
import { requirePermission, type Principal } from "../permissions/index.ts";
import type { TenantService } from "../tenants/index.ts";

export interface ClusterDependencies {
  readonly engine: Pick<Engine, "nodes">;
  readonly tenants: Pick<TenantService, "ready" | "isFirst">;
}

/** What the installation runs on. */
export class ClusterService {
  readonly #with: ClusterDependencies;

  constructor(dependencies: ClusterDependencies) {
    this.#with = dependencies;
  }

  async nodes(principal: Principal): Promise<readonly DataNode[]> {
    requirePermission(principal, "cluster:read");
    return this.#with.engine.nodes();
  }

  /**
   * Tenants whose keyspace is gone: told to the first tenant, which manages the others. `undefined`: to another one, or
   * not to be known at the moment.
   */
  async lost(principal: Principal): Promise<readonly LostTenant[] | undefined> {
    requirePermission(principal, "cluster:read");
    const { tenants } = this.#with;
    if (!(await tenants.isFirst(principal.tenant))) return undefined;
    try {
      return (await tenants.ready()).lost;
    } catch (error) {
      if (isAppError(error, "unavailable")) return undefined;
      throw error;
    }
  }
}
