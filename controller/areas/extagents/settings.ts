import { errorText, isAppError } from "../../../common/errors.ts";
import { absolutePath } from "../../../common/paths.ts";
import type { HostSettings } from "../hosts/index.ts";

/** How the external agent of a host is run. */
export interface ExternalAgent {
  /** Absolute folder of the agent on the host. */
  readonly dir: string;
  /** Command lines, which run in that folder. */
  readonly start: string;
  readonly stop: string;
}

const LINES = ["extagent_start", "extagent_stop"] as const;

/** The settings of a host for its external agent, or the reason why they cannot be used. */
export function externalAgentOf(host: string, settings: HostSettings): ExternalAgent | string {
  const { isextagent, iszabbix, config } = settings;
  if (isextagent !== 1 && iszabbix !== 1) return `${host} is no host for an external agent: its isextagent is not 1.`;
  const missing = ["extagent_dir", ...LINES].filter((name) => (config[name] ?? "").trim() === "");
  if (missing.length > 0) return `The config of ${host} has no ${missing.join(", ")}.`;
  if (/^windows/i.test(config["os"] ?? "")) return `${host} runs Windows. External agents need a POSIX shell.`;
  const { extagent_dir = "", extagent_start = "", extagent_stop = "" } = config;
  try {
    return { dir: absolutePath(extagent_dir), start: extagent_start, stop: extagent_stop };
  } catch (error) {
    if (isAppError(error, "invalid")) return `extagent_dir of ${host}: ${errorText(error)}`;
    throw error;
  }
}
