import { createHash } from "node:crypto";
import { EXTERNAL_AGENT_GONE_S, EXTERNAL_AGENT_PROGRAMS_MAX_BYTES } from "../../../common/limits.ts";
import type { DepotFile } from "../hosts/index.ts";
import { quoted } from "../hosts/index.ts";
import { FUNCTIONS, KEY_FILE, STATE_FILE } from "./functions.ts";
import type { ExternalAgent } from "./settings.ts";

/** Scripts for a POSIX shell. Their output is one line for each step, such as `stop: done`, and output of failed steps. */

export function startScript(agent: ExternalAgent): string {
  return scriptOf(agent, ["odp_start"]);
}

export function stopScript(agent: ExternalAgent): string {
  return scriptOf(agent, ["odp_stop"]);
}

export function restartScript(agent: ExternalAgent): string {
  return scriptOf(agent, ["odp_stop && odp_start"]);
}

export interface Placing {
  /** Runs after the key is in place. */
  readonly command: string | undefined;
  readonly files: readonly DepotFile[];
  /** True if the variable `EXTERNAL_AGENT_KEY` has the key. */
  readonly hasKey: boolean;
}

/**
 * The command of the depot, once its files are in place. A running agent is stopped before the new version starts. If it
 * ends with a failure, the former key is in place again.
 */
export function deployScript(agent: ExternalAgent, { command, files, hasKey }: Placing): string {
  return scriptOf(agent, [
    ...(hasKey ? ["odp_put_key"] : []),
    ...(command === undefined || command === "" ? [] : [`odp_command ${quoted(command)}`]),
    `: >"$odp_work/new"`,
    ...programsOf(files).map((path) => `printf ' -> %s/%s\\n' "$odp_home" ${quoted(path)} >>"$odp_work/new"`),
    "odp_deploy",
  ]);
}

/** The command before the files of the depot are removed. */
export function undeployScript(agent: ExternalAgent): string {
  return scriptOf(agent, ["odp_stop || exit", `rm -f -- ${KEY_FILE} ${STATE_FILE}`]);
}

function scriptOf({ dir, start, stop }: ExternalAgent, lines: readonly string[]): string {
  return [
    `odp_dir=${quoted(dir)}`,
    `odp_start=${quoted(start)}`,
    `odp_stop=${quoted(stop)}`,
    `odp_mark=${createHash("sha256").update(dir).digest("hex").slice(0, 32)}`,
    `odp_gone_s=${EXTERNAL_AGENT_GONE_S}`,
    FUNCTIONS.trim(),
    "odp_begin",
    ...lines,
  ].join("\n");
}

/** Paths of the depot's programs, as many as fit. */
function programsOf(files: readonly DepotFile[]): readonly string[] {
  let room = EXTERNAL_AGENT_PROGRAMS_MAX_BYTES;
  return files
    .filter(({ executable }) => executable)
    .map(({ path }) => path)
    .filter((path) => (room -= Buffer.byteLength(path)) >= 0);
}
