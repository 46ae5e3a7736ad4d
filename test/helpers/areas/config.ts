import { randomBytes } from "node:crypto";
import {
  ConfigCache,
  ConfigChanges,
  ConfigEntries,
  ConfigHistory,
  ConfigImport,
  ConfigSchemas,
  ConfigService,
  ConfigWatch,
  configArea,
  schemaOwner,
  type ConfigOwner,
} from "../../../controller/areas/config/index.ts";
import { ObjectService } from "../../../controller/areas/objects/index.ts";
import { RuleService, ruleOwner } from "../../../controller/areas/rules/index.ts";
import type { Runtime } from "../../../controller/runtime.ts";
import type { Stores } from "../../../controller/store/engine.ts";
import type { Controllers } from "../../../controller/store/journal/index.ts";
import type { Clock } from "../../../common/time.ts";
import { realClock } from "../time/clock.ts";
import { TEST_SECRETS, testRuntime } from "../time/runtime.ts";
import { visibleObjects } from "../../../controller/areas/query/index.ts";

/** Ids that no other controller of the test generates. */
function runtimeOf(clock: Clock): Runtime {
  return {
    ...testRuntime(clock),
    random: { next: () => Math.random(), bytes: (count) => new Uint8Array(randomBytes(count)) },
  };
}

/** Configuration entries over these stores, for services that store their texts there. */
export function testEntries(stores: Stores): ConfigEntries {
  return new ConfigEntries({ stores, runtime: runtimeOf(realClock) });
}

export interface ConfigWorldOptions {
  /** Absent: the real clock. */
  readonly clock?: Clock;
  /** Absent: a single controller. */
  readonly controllers?: Controllers;
  readonly owners?: readonly ConfigOwner[];
}

/** Configuration and rules of one controller over these stores. */
export function configWorld(stores: Stores, options: ConfigWorldOptions = {}) {
  const runtime = runtimeOf(options.clock ?? realClock);
  const objects = new ObjectService({ visible: visibleObjects, stores, runtime });
  const entries = new ConfigEntries({ stores, runtime });
  const cache = new ConfigCache({ entries, runtime });
  const controllers = options.controllers ?? { own: "this", has: (id: string) => id === "this" };
  const changes = new ConfigChanges({ entries, stores, runtime, controllers });
  const rules = new RuleService({ stores, entries, objects });
  const owners = [ruleOwner(rules), schemaOwner, ...(options.owners ?? [])];
  const dependencies = { entries, cache, changes, objects, runtime, secrets: TEST_SECRETS, owners };
  const config = new ConfigService(dependencies);
  const area = configArea({
    sealed: [],
    cache,
    changes,
    config,
    schemas: new ConfigSchemas(dependencies, config),
    history: new ConfigHistory(dependencies),
    imports: new ConfigImport(dependencies),
    watch: new ConfigWatch(dependencies),
  });
  for (const definition of area.classes ?? []) objects.registerSystemClass(definition);
  return {
    ...dependencies,
    area,
    rules,
    async [Symbol.asyncDispose]() {
      await area.close?.();
      await objects.close();
    },
  };
}
