import { AppError } from "../../../common/errors.ts";
import type { HostObjects, ScriptHost } from "../../scripting/index.ts";
import type { RunLog } from "../consolelog/index.ts";
import type { Principal } from "../permissions/index.ts";

/** What the text of a trigger reaches, with the rights of its author. */
export function triggerHost(hostObjects: HostObjects, author: Principal, log: RunLog): ScriptHost {
  return hostObjects.bind({
    principal: author,
    kind: "trigger",
    log: log.add,
    // A trigger leaves no audit entry of its own: it is part of the change that called it.
    beforeChange: () => Promise.resolve(),
    load: (path) => Promise.reject(new AppError("unsupported", `A trigger requires no other text such as ${path}.`)),
  });
}
