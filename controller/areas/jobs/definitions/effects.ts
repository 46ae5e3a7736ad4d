import { listed } from "../../../../common/text/listed.ts";
import { serverScriptOf } from "./stages.ts";
import type { StoredJob } from "../store.ts";

/** Members that only commands on hosts use. */
const OF_HOSTS = ["host", "group", "groupmode", "algorithm", "arg", "argenc", "user", "retry", "retrydelay"] as const;

/** One sentence for each part of a definition that has no effect. Does not check the schedule. */
export function withoutEffect(job: StoredJob): readonly string[] {
  const given = OF_HOSTS.filter((member) => isGiven(job[member]));
  if (serverScriptOf(job.exec) !== "")
    return given.length === 0
      ? []
      : [`Without effect in a job that the controller runs as a script: ${listed(given)}.`];
  return [
    ...(job.algorithm !== "" && job.groupmode !== "one"
      ? ["algorithm is without effect: it is of groupmode one."]
      : []),
    ...(given.includes("retrydelay") && !given.includes("retry")
      ? ["retrydelay is without effect without retry."]
      : []),
  ];
}

/** True if the member differs from its default. */
function isGiven(value: StoredJob[(typeof OF_HOSTS)[number]]): boolean {
  if (typeof value === "number") return value > 0;
  return typeof value === "string" ? value.trim() !== "" : value !== undefined && value.length > 0;
}
