import type { Row } from "../../../common/value.ts";
import type { OpenRun, RunEnd } from "./open-runs.ts";

/** Of each command that ended: what it was, how it ended and its share of what the row of the run has as output. */
export function commandRows(
  { runId, host, order }: Pick<OpenRun, "runId" | "host" | "order">,
  { commands = [], out, err }: RunEnd,
): readonly Row[] {
  const { name, dir, sid, principal } = order;
  const last = commands.length - 1;
  return commands.map(({ state, message, startedMs, endedMs, out: outEnd, err: errEnd, ...exit }, at): Row => {
    const before = commands[at - 1];
    // What comes after the end of the last one, the note of what is left out too, is its own.
    const [outTo, errTo] = at === last ? [] : [outEnd, errEnd];
    return {
      ...{ runid: runId, host, place: at + 1, name, dir, sid, source: principal.user, type: "cmd" },
      ...{ status: state, message, cmd: order.commands[at] ?? "", ...exit },
      ...{ out: out.slice(before?.out ?? 0, outTo), err: err.slice(before?.err ?? 0, errTo) },
      ...{ stime: startedMs, etime: endedMs },
    };
  });
}
