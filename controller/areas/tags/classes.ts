import { DAY_SECONDS, TAG_MOVE_RECORD_TTL_DAYS } from "../../../common/limits.ts";
import type { Row } from "../../../common/value.ts";
import { columns, type SystemClass, type Unrestricted } from "../objects/index.ts";
import { systemPrincipal } from "../permissions/index.ts";
import type { OpenMove } from "./open-moves.ts";

/** Relative to the tenant's ospace: one object for each move or removal of a tag that objects had. */
export const TAG_MOVE_PATH = "/system/tagmove";

export const TAG_MOVE_CLASS: SystemClass = {
  path: TAG_MOVE_PATH,
  columns: [
    ...columns("varchar", {
      move: "Id of the move",
      domain: "Domain in whose tree the tag was moved or removed",
      tagpath: "Path of the tag before",
      topath: "Path of the tag after; empty: it is removed",
      user: "User who asked for it",
      state: "running, done or failed",
    }),
    ...columns("bigint", {
      done: "Number of objects that were changed so far",
      refused: "Number of objects that refused and keep the tag; 0 while it goes on",
    }),
    ...columns("text", { message: "Reason of a failure or of a refusal; empty if there was none" }),
    ...columns("timestamp", {
      started: "Time at which the move began",
      ended: "Time at which the move ended; empty while it goes on",
    }),
  ],
  keys: ["move"],
  indexes: ["state"],
  options: { ttlSeconds: TAG_MOVE_RECORD_TTL_DAYS * DAY_SECONDS },
  guard: { reading: { permission: "tags:read", isOpenToGroups: true } },
};

/** Writes the progress of a move to its object. */
export async function tellMove(objects: Unrestricted<"insert">, open: OpenMove): Promise<void> {
  const { id, domain, from, to = "", user, done, startedMs, notedMs, end } = open;
  const row: Row = {
    move: id,
    domain,
    tagpath: from,
    topath: to,
    user,
    state: end?.state ?? "running",
    done,
    refused: end?.refused ?? 0,
    message: end?.message ?? "",
    started: startedMs,
    ...(end && { ended: end.endedMs }),
  };
  const platform = systemPrincipal(open.tenant, open.ospace, open.traceparent);
  await objects.unrestricted.insert(platform, open.ospace + TAG_MOVE_PATH, [row], { atMs: end?.endedMs ?? notedMs });
}
