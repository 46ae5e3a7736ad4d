import { DAY_SECONDS } from "../../common/limits.ts";
import type { ClassSpec } from "../areas/objects/index.ts";

/** Classes of the demonstration. */
export function demoClasses(ospace: string): readonly ClassSpec[] {
  const options = { ttlSeconds: 7 * DAY_SECONDS };
  return [
    {
      path: `${ospace}/demo/load`,
      kind: "record",
      columns: [
        { name: "host", type: "varchar", title: "Host" },
        { name: "load1", type: "double", title: "Load of the last minute" },
        { name: "memory_used", type: "double", title: "Memory used, percent" },
      ],
      indexes: ["host"],
      options,
    },
    {
      path: `${ospace}/demo/log`,
      kind: "record",
      columns: [
        { name: "host", type: "varchar", title: "Host" },
        { name: "program", type: "varchar", title: "Program" },
        { name: "message", type: "text", title: "Message" },
        { name: "path", type: "varchar", title: "Path of the request" },
        { name: "status", type: "int", title: "Status of the answer" },
      ],
      indexes: ["host", "program"],
      options,
    },
  ];
}

/** Rules of the demonstration: for its script, for the log of a system and for the controller's own log. */
export function demoRules(ospace: string): Readonly<Record<"load" | "systemLog" | "ownLog", string>> {
  return {
    load: `--class=${ospace}/demo/load\n--parser=csv\n--fields=host,load1,memory_used\n--fields_type=VAR,FLOAT,FLOAT\n`,
    systemLog: `--class=${ospace}/demo/log\n--parser=grok\n--pattern_1=%{SYSLOGLINE}\n--pattern_2=%{GREEDYDATA:message}\n--var_host=field _host\n`,
    ownLog: `--class=${ospace}/demo/log\n--parser=json\n--var_message=field msg\n--var_program='odp'\n--var_host=field _host\n`,
  };
}
