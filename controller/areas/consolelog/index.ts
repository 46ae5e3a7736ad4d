export { consoleLogArea } from "./area.ts";
export { CONSOLE_LOG_CLASSES, consoleLogPath } from "./classes.ts";
export { levelOf } from "./levels.ts";
export { ConsoleLogService } from "./service.ts";
