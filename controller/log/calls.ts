import { hostname } from "node:os";
import type { Clock } from "../../common/time.ts";
import type { LogFile } from "./file.ts";

/** One answered call, as the log has it. */
export interface CallLine {
  readonly method: string;
  /** Without the query, which may contain secrets. */
  readonly path: string;
  /** Pattern of the path. */
  readonly route: string;
  readonly status: number;
  /** `ok` or the code of the failure. */
  readonly code: string;
  readonly elapsedMs: number;
  readonly tenant: string;
  readonly user: string;
  readonly remote: string;
  readonly traceparent: string;
}

export type CallLog = (call: CallLine) => void;

/** The number by which pino names the level `info`. */
const INFO = 30;

/**
 * Writes one line for each call, in pino's form but not by pino: every call has such a line, and pino would cost more
 * than the rest of a short call. The file stores these lines a little later than others (`LogFile.writeLater`).
 */
export function callLog(file: Pick<LogFile, "writeLater">, clock: Clock): CallLog {
  const { pid } = process;
  const host = hostname();
  return (call) =>
    file.writeLater(
      `${JSON.stringify({ level: INFO, time: clock.nowMs(), pid, hostname: host, ...call, msg: "request" })}\n`,
    );
}
