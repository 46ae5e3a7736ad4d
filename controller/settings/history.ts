import {
  DAY_SECONDS,
  FILE_HISTORY_DAYS_DEFAULT,
  FILE_HISTORY_DAYS_MAX,
  FILE_HISTORY_MIB_DEFAULT,
  FILE_HISTORY_MIB_MAX,
} from "../../common/limits.ts";
import type { SettingName } from "./catalogue.ts";
import { whole } from "./values.ts";

/** Bounds of the contents that are kept of replaced and removed files. */
export interface FileHistorySettings {
  readonly ageMs: number;
  readonly maxBytes: number;
}

/** `undefined`: no contents are kept. */
export function fileHistory(text: (name: SettingName, otherwise: string) => string): FileHistorySettings | undefined {
  const days = text("file_history_days", String(FILE_HISTORY_DAYS_DEFAULT));
  const mib = text("file_history_mib", String(FILE_HISTORY_MIB_DEFAULT));
  const ageMs = whole("file_history_days", days, { from: 0, to: FILE_HISTORY_DAYS_MAX }) * DAY_SECONDS * 1_000;
  const maxBytes = whole("file_history_mib", mib, { from: 1, to: FILE_HISTORY_MIB_MAX }) * 1_024 * 1_024;
  return ageMs === 0 ? undefined : { ageMs, maxBytes };
}
