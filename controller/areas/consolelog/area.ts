import type { Area } from "../../area.ts";
import { CONSOLE_LOG_CLASSES } from "./classes.ts";
import { consoleLogHostObject, LOG_HOST_OBJECT } from "./host-objects.ts";
import { consoleLogRoutes, consoleLogSockets } from "./routes.ts";
import type { ConsoleLogService } from "./service.ts";

export function consoleLogArea(logs: ConsoleLogService): Area {
  return {
    name: "consolelog",
    classes: CONSOLE_LOG_CLASSES,
    hostObjects: [LOG_HOST_OBJECT, consoleLogHostObject(logs)],
    endpoints: consoleLogRoutes(logs),
    sockets: consoleLogSockets(logs),
  };
}
