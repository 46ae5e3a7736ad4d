import type { Row } from "../../../../common/value.ts";
import type { OpenRun, RunEnd } from "../runs/open-runs.ts";

/**
 * One row for each finished command: its command line, its end, and its part of the output that is in the run's row.
 */
export function commandRows(
  { runId, host, order }: Pick<OpenRun, "runId" | "host" | "order">,
  { commands = [], out, err }: RunEnd,
): readonly Row[] {
  const { name, dir, sid, principal } = order;
  const last = commands.length - 1;
  return commands.map(({ state, message, startedMs, endedMs, out: outEnd, err: errEnd, ...exit }, at): Row => {
    const before = commands[at - 1];
    // All text after the end of the last command belongs to that command, such as the note on omitted output.
    const [outTo, errTo] = at === last ? [] : [outEnd, errEnd];
    return {
      ...{ runid: runId, host, place: at + 1, name, dir, sid, source: principal.user, type: "cmd" },
      ...{ status: state, message, cmd: order.commands[at] ?? "", ...exit },
      ...{ out: out.slice(before?.out ?? 0, outTo), err: err.slice(before?.err ?? 0, errTo) },
      ...{ stime: startedMs, etime: endedMs },
    };
  });
}
