import type { Area } from "../../area.ts";
import type { RetainedKeyParts } from "./retained-parts.ts";
import type { Resealing } from "./resealing.ts";
import { keyRoutes } from "./routes.ts";
import type { KeyService } from "./service.ts";

export interface KeyParts {
  readonly keys: KeyService;
  readonly resealing: Resealing;
  readonly parts: RetainedKeyParts;
}

export function keysArea({ keys, resealing, parts }: KeyParts): Area {
  return {
    name: "keys",
    endpoints: keyRoutes(keys),
    sealed: [parts.sealed()],
    start: () => resealing.start(),
    stop: () => resealing.stop(),
  };
}
