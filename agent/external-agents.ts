import { closeSync, fstatSync, openSync, readFileSync, readlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { EXTERNAL_AGENT_STATE_MAX_BYTES } from "../common/limits.ts";
import { OPEN_FLAGS } from "./disk/trusted-path.ts";

/** Variable by which processes of external agents are recognised. Their start command gets it from the controller. */
const VARIABLE = Buffer.from("\0ODP_EXTERNAL_AGENT=");
/** File in the folder of an external agent, with a line for each program that its depot brought. */
const STATE_FILE = ".odp-external-agent";

/**
 * Recognises processes of external agents as the controller's script does: by their environment, or by their program if
 * they overwrite it. The state files that it has read are remembered, so make a new one for each look at all processes.
 */
export class ExternalAgents {
  readonly #root: string;
  readonly #states = new Map<string, string>();

  /** `root`: `/proc`. */
  constructor(root: string) {
    this.#root = root;
  }

  /** False as well for a process of another user, if the agent is not root. */
  includes(pid: number): boolean {
    return this.#hasVariable(pid) || this.#isOfDepot(pid);
  }

  #hasVariable(pid: number): boolean {
    try {
      const environment = readFileSync(join(this.#root, String(pid), "environ"));
      return Buffer.concat([Buffer.of(0), environment]).includes(VARIABLE);
    } catch {
      return false;
    }
  }

  /** True if the program is listed in the state file of a folder above it. */
  #isOfDepot(pid: number): boolean {
    const program = this.#programOf(pid);
    if (program === undefined) return false;
    for (let folder = dirname(program); folder !== dirname(folder); folder = dirname(folder))
      if (this.#stateOf(folder).includes(`program -> ${program}\n`)) return true;
    return false;
  }

  #programOf(pid: number): string | undefined {
    try {
      return readlinkSync(join(this.#root, String(pid), "exe"));
    } catch {
      return undefined;
    }
  }

  #stateOf(folder: string): string {
    const state = this.#states.get(folder) ?? stateIn(folder);
    this.#states.set(folder, state);
    return state;
  }
}

/**
 * Empty for a folder without a regular file of that name and of a usual length. Any user can make such a file above a
 * program of their own.
 */
function stateIn(folder: string): string {
  let file: number | undefined;
  try {
    file = openSync(join(folder, STATE_FILE), OPEN_FLAGS);
    const seen = fstatSync(file);
    return seen.isFile() && seen.size <= EXTERNAL_AGENT_STATE_MAX_BYTES ? readFileSync(file, "utf8") : "";
  } catch {
    return "";
  } finally {
    if (file !== undefined) closeSync(file);
  }
}
