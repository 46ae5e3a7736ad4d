import type { Area } from "../../area.ts";
import type { Unrestricted } from "../objects/index.ts";
import { asideClass } from "./classes.ts";
import { triggerRoutes } from "./routes.ts";
import type { TriggerService } from "./service.ts";

export function triggersArea({
  triggers,
  objects,
}: {
  readonly triggers: TriggerService;
  readonly objects: Unrestricted<"update" | "remove">;
}): Area {
  return {
    name: "triggers",
    endpoints: triggerRoutes(triggers),
    classes: [asideClass(objects)],
    maintain: (tenant) => triggers.maintain(tenant),
    close: () => triggers.close(),
  };
}
