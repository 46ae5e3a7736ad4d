import { DAY_SECONDS, TRANSFER_RECORD_TTL_DAYS } from "../../../common/limits.ts";
import type { Row } from "../../../common/value.ts";
import type { Notifications } from "../notifications/index.ts";
import { columns, type SystemClass, type Unrestricted } from "../objects/index.ts";
import { systemPrincipal } from "../permissions/index.ts";
import type { OpenImport } from "./store.ts";
import type { TransferReport } from "./types.ts";

/** Path without the ospace, of the class with one object for each import that began to write. */
export const TRANSFER_PATH = "/system/transfer";

export const TRANSFER_CLASS: SystemClass = {
  path: TRANSFER_PATH,
  columns: [
    ...columns("varchar", {
      transfer: "Id of the import",
      user: "User who started the import",
      state: "running, done or failed",
    }),
    { name: "name", type: "varchar", title: "File", meaning: "Name of the uploaded file, as the client gave it" },
    { name: "total", type: "bigint", title: "Statements", meaning: "Statements of the import" },
    {
      name: "done",
      type: "bigint",
      title: "Statements written",
      meaning: "Statements whose objects are written; relations follow after all of them",
    },
    ...columns("text", { message: "Reason of a failure, or warnings; empty if there are none" }),
    ...columns("timestamp", {
      started: "Time at which the import began",
      ended: "Time at which the import ended; empty while it goes on",
    }),
    {
      name: "times",
      type: "boolean",
      title: "With former times",
      meaning: "True if objects get their former times back; empty otherwise",
    },
  ],
  keys: ["transfer"],
  indexes: ["state", "user"],
  options: { ttlSeconds: TRANSFER_RECORD_TTL_DAYS * DAY_SECONDS },
  guard: { reading: { permission: "objects:read", isOpenToGroups: true } },
};

interface Dependencies {
  readonly objects: Unrestricted<"insert">;
  readonly notifications: Pick<Notifications, "publish">;
}

/**
 * Shows the progress of imports: in one object for each import, and in notifications with the subject `transfer` and
 * the import's id as title.
 */
export class TransferRecords {
  readonly #dependencies: Dependencies;

  constructor(dependencies: Dependencies) {
    this.#dependencies = dependencies;
  }

  async tell(open: OpenImport): Promise<void> {
    const { id, principal, startedMs, notedMs, end } = open;
    const atMs = end?.endedMs ?? notedMs;
    const row = rowOf(open);
    // The platform writes the rows: the right to import does not include the right to write them.
    const platform = systemPrincipal(principal.tenant, principal.ospace, principal.traceparent);
    const path = `${principal.ospace}${TRANSFER_PATH}`;
    const [objectId = ""] = await this.#dependencies.objects.unrestricted.insert(platform, path, [row], { atMs });
    this.#dependencies.notifications.publish(principal.tenant, {
      keyspace: principal.ospace,
      source: "transfer",
      subject: "transfer",
      title: id,
      reply: "",
      msg: JSON.stringify(reportOf(open)),
      about: {
        permission: "objects:read",
        class: path,
        id: objectId,
        values: row,
        vtimeMs: atMs,
        ctimeMs: startedMs,
        told: ["transfer"],
      },
    });
  }
}

/** The row of the import's object, for its present state. */
export function rowOf(open: OpenImport): Row {
  const { id, name, principal, startedMs, end, times } = open;
  const { state, total, done, message } = reportOf(open);
  const told = { transfer: id, name, user: principal.user, state, total, done, message, started: startedMs };
  return { ...told, ...(end && { ended: end.endedMs }), ...(times === true && { times }) };
}

export function reportOf({ id, total, done, pass, end }: OpenImport): TransferReport {
  return {
    id,
    state: end?.state ?? "running",
    total,
    done: pass === "objects" ? done : total,
    message: end?.message ?? "",
  };
}
