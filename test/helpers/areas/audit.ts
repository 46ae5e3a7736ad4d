import { AppError } from "../../../common/errors.ts";
import type { Audit, AuditEntry } from "../../../controller/areas/audit/index.ts";
import type { HostObject } from "../../../controller/scripting/index.ts";

/** For functions whose changes a service records itself, or that change nothing. */
export const UNAUDITED: Pick<Audit, "ready" | "record"> = {
  ready: () => Promise.resolve(),
  record: () => Promise.resolve(),
};

/** Audit trail of script runs, in memory. While it is unavailable, nothing may be changed. */
export class MemoryAudit implements Pick<Audit, "ready" | "record"> {
  /** User, action and code of each entry. */
  readonly entries: string[] = [];
  isAway = false;

  ready(): Promise<void> {
    return this.isAway ? Promise.reject(new AppError("unavailable", "the trail is away")) : Promise.resolve();
  }

  record({ action, user, code }: AuditEntry): Promise<void> {
    this.entries.push(`${user} ${action} ${code}`);
    return Promise.resolve();
  }
}

/** `outside.change()`: makes a change that no service records, as `dfs.write` does. */
export function outsideHostObject(onChange: () => void = () => undefined): HostObject {
  return {
    name: "outside",
    summary: "",
    functions: [
      {
        name: "change",
        summary: "",
        parameters: [],
        returns: "",
        example: "",
        changes: true,
        call: () => {
          onChange();
          return Promise.resolve(undefined);
        },
      },
    ],
  };
}
