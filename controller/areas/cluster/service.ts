import type { DataNode, Engine } from "../../store/engine.ts";
import { requirePermission, type Principal } from "../permissions/index.ts";

/** What the installation runs on. */
export class ClusterService {
  readonly #engine: Pick<Engine, "nodes">;

  constructor({ engine }: { readonly engine: Pick<Engine, "nodes"> }) {
    this.#engine = engine;
  }

  async nodes(principal: Principal): Promise<readonly DataNode[]> {
    requirePermission(principal, "cluster:read");
    return this.#engine.nodes();
  }
}
