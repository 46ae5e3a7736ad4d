import type { Notification } from "../../notifications/index.ts";
import { pathOf, startRow, type PlacedRun } from "../runs/endings.ts";

/** The state of a run on one host in a notification. */
export interface NotifiedState {
  readonly status: string;
  readonly code?: number;
  readonly signal?: string;
  readonly message?: string;
}

export function runNotice(open: PlacedRun, state: NotifiedState, nowMs: number): Notification {
  const { runId, host, order } = open;
  const { principal, name, sid } = order;
  const { status, code = null, message = "" } = state;
  return {
    keyspace: principal.ospace,
    source: host,
    subject: "jobrun",
    title: name,
    reply: "",
    msg: JSON.stringify({ runid: runId, sid, host, name, ...state }),
    about: {
      permission: "jobs:read",
      class: pathOf(open),
      id: undefined,
      values: { ...startRow(open), status, code, message },
      vtimeMs: nowMs,
      ctimeMs: open.startedMs,
      told: ["host", "name"],
    },
  };
}
