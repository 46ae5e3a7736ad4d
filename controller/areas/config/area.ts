import type { Area } from "../../area.ts";
import type { SealedKind } from "../../secrets/index.ts";
import type { ConfigCache } from "./cache.ts";
import type { ConfigChanges } from "./changes.ts";
import { configClass } from "./classes.ts";
import { configHostObjects } from "./host-objects.ts";
import { configRoutes, configSockets, type ConfigServices } from "./routes.ts";

export interface ConfigParts extends ConfigServices {
  readonly cache: ConfigCache;
  readonly changes: ConfigChanges;
  readonly sealed: readonly SealedKind[];
}

export function configArea({ cache, changes, sealed, ...services }: ConfigParts): Area {
  return {
    name: "config",
    endpoints: configRoutes(services),
    sockets: configSockets(services),
    hostObjects: configHostObjects(services.config),
    classes: [configClass(services.config)],
    sealed,
    maintain: (tenant) => changes.maintain(tenant),
    leave: (tenant) => cache.leave(tenant),
    close: async () => {
      await changes.close();
      await cache.close();
    },
  };
}
