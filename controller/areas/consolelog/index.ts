export { consoleLogArea } from "./area.ts";
export { CONSOLE_LOG_CLASSES, consoleLogPath } from "./classes.ts";
export { LEVELS, levelOf } from "./levels.ts";
export { ConsoleLogService, type SaidEntry } from "./service.ts";
