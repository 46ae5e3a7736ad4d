import type { DataNode, Engine } from "../../store/engine.ts";

/** What the installation runs on. */
export class ClusterService {
  readonly #engine: Pick<Engine, "nodes">;

  constructor({ engine }: { readonly engine: Pick<Engine, "nodes"> }) {
    this.#engine = engine;
  }

  nodes(): Promise<readonly DataNode[]> {
    return this.#engine.nodes();
  }
}
