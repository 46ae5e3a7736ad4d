import { AppError } from "../../../common/errors.ts";
import type { BoundHost, HostObjects } from "../../scripting/index.ts";
import type { RunTrail } from "../audit/index.ts";
import type { RunLog } from "../consolelog/index.ts";
import type { Principal } from "../permissions/index.ts";

/** Host functions for the script of a trigger, with the rights of its author. */
export function triggerHost(
  hostObjects: HostObjects,
  { author, log, audit }: { readonly author: Principal; readonly log: RunLog; readonly audit: Pick<RunTrail, "ready"> },
): BoundHost {
  return hostObjects.bind({
    principal: author,
    kind: "trigger",
    log: log.add,
    beforeChange: () => audit.ready(author.tenant),
    load: (path) => Promise.reject(new AppError("unsupported", `A trigger requires no other text such as ${path}.`)),
  });
}
