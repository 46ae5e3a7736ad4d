import { emptyJob } from "./definition.ts";
import { formatJobName } from "./names.ts";
import type { StoredJob } from "../store.ts";

/** Jobs of the platform in every tenant: each runs the command line given in `param.cmd`. */
export const SYSTEM_JOBS: readonly StoredJob[] = [
  systemJob("remote_command", "Runs the command line of param.cmd on the host of param.HOST!"),
  systemJob("remote_wincall", "Runs the command line of param.cmd on the Windows host of param.HOST!"),
];

/** `undefined` if the platform has no job of this name, `<name>@<dir>`. */
export function systemJobOf(fullName: string): StoredJob | undefined {
  return SYSTEM_JOBS.find((job) => formatJobName(job) === fullName);
}

function systemJob(name: string, description: string): StoredJob {
  return { ...emptyJob({ name, dir: "system/common" }), description, creator: "system" };
}
