import { randomBytes } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock, Random } from "../../common/time.ts";
import { openEmbeddedEngine } from "../../controller/store/embedded/index.ts";
import type { Engine } from "../../controller/store/engine.ts";
import { faulty } from "../../controller/store/faulty.ts";
import { realClock, seededRandom } from "./clock.ts";

export interface TestEngineOptions {
  /** Wraps the stores so that they are as nasty as a cluster, in the way this seed says. */
  readonly faultySeed?: number;
  /** The real clock when absent. */
  readonly clock?: Clock;
}

/** An engine on a folder of its own with the tenants `matrix` and `second`; disposing closes it and deletes the folder. */
export interface TestEngine extends Engine, AsyncDisposable {
  readonly dir: string;
}

const realRandom: Random = {
  next: () => Math.random(),
  bytes: (count) => new Uint8Array(randomBytes(count)),
};

export async function openTestEngine(options: TestEngineOptions = {}): Promise<TestEngine> {
  const dir = await mkdtemp(join(tmpdir(), "odp-test-"));
  const embedded = await openEmbeddedEngine({ dir, runtime: { clock: options.clock ?? realClock, random: realRandom } });
  await embedded.createTenant("matrix");
  await embedded.createTenant("second");
  const inner: Engine = options.faultySeed === undefined ? embedded : faulty(embedded, { random: seededRandom(options.faultySeed) });
  const close = async (): Promise<void> => {
    await inner.close();
    await rm(dir, { recursive: true, force: true });
  };
  return {
    kind: inner.kind,
    dir,
    system: () => inner.system(),
    tenant: (name) => inner.tenant(name),
    createTenant: (name, tenantOptions) => inner.createTenant(name, tenantOptions),
    dropTenant: (name) => inner.dropTenant(name),
    nodes: () => inner.nodes(),
    ready: () => inner.ready(),
    close,
    [Symbol.asyncDispose]: close,
  };
}
