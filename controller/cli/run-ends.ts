import { constants } from "node:os";
import { counted } from "../../common/text/counted.ts";

/** End of a run on one host. */
export interface HostEnd {
  readonly host: string;
  readonly state: string;
  readonly code?: number;
  readonly signal?: string;
  readonly message: string;
}

/** Ends of a command that are no exit code of its own, as other tools number them: `timeout`, `ssh`, a shell. */
const CODE_OF_STATE: Readonly<Record<string, number>> = {
  timeout: 124,
  expired: 124,
  cancelled: 130,
  unreachable: 255,
};
export const FAILED = 1;

/** The worst of all hosts. */
export function exitCodeOf(runs: readonly HostEnd[]): number {
  return runs.length === 0 ? FAILED : Math.max(...runs.map(codeOf));
}

function codeOf({ state, code, signal }: HostEnd): number {
  if (state === "ok") return 0;
  return CODE_OF_STATE[state] ?? (code || codeOfSignal(signal));
}

/** As a shell numbers it. */
function codeOfSignal(name: string | undefined): number {
  const number = Object.entries(constants.signals).find(([signal]) => signal === name)?.[1];
  return number === undefined ? FAILED : 128 + number;
}

/** Messages of ends that the exit code of the call does not tell. */
export function failuresOf(runs: readonly HostEnd[]): readonly string[] {
  return runs
    .filter(
      ({ state, code, signal }) =>
        state !== "ok" && !(state === "failed" && code !== undefined && signal === undefined),
    )
    .map(endText);
}

/** A line for each host and script of the job, and `3 hosts: 2 ok, 1 failed`. Names of scripts begin with a hyphen. */
export function recapOf(runs: readonly HostEnd[]): readonly string[] {
  const hosts = runs.filter(({ host }) => !host.startsWith("-"));
  const counts = new Map<string, number>();
  for (const { state } of hosts) counts.set(state, (counts.get(state) ?? 0) + 1);
  const states = [...counts].map(([state, count]) => `${count} ${state}`);
  const total = [counted(hosts.length, "host"), ...(states.length > 0 ? [states.join(", ")] : [])].join(": ");
  return [...runs.map(endText), total];
}

function endText({ host, state, signal, message }: HostEnd): string {
  if (state === "ok") return `${host}: ok`;
  return `${host}: ${state}: ${signal === undefined || message.includes(signal) ? message : `${signal}: ${message}`}`;
}
