import type { Clock } from "../common/time.ts";

export type LogLevel = "debug" | "info" | "warn" | "error";
export type Log = (level: LogLevel, message: string, fields?: Readonly<Record<string, unknown>>) => void;

/** Creates a log that writes one JSON object per line. */
export function createLog(clock: Clock, write: (line: string) => void): Log {
  return (level, message, fields = {}) => {
    write(`${JSON.stringify({ time: new Date(clock.nowMs()).toISOString(), level, message, ...fields })}\n`);
  };
}
