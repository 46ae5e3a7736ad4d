export { consoleLogArea } from "./area.ts";
export { CONSOLE_LOG_CLASSES, consoleLogPath } from "./classes.ts";
export { LEVELS, levelOf } from "./levels.ts";
export { RunLogs, SCRIPT_LOG_BOUNDS, type RunLog } from "./run-log.ts";
export { ConsoleLogService, type SaidEntry } from "./service.ts";
