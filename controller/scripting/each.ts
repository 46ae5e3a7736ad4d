import type { RunReport, RunTask, ScriptTask } from "./task.ts";

/** Where a text is to run for each of several sets of globals: one after the other, in variables of its own each. */
export function eachOf(task: RunTask): ScriptTask {
  return async ({ each, ...input }) => {
    if (each === undefined) return task(input);
    const reports: RunReport[] = [];
    for (const globals of each) {
      const report = await task({ ...input, globals });
      if ("failure" in report && endsAll(report.failure.kind)) return report;
      reports.push(report);
    }
    return { reports };
  };
}

function endsAll(kind: string): boolean {
  return kind === "stopped" || kind === "syntax";
}
