import { DAY_SECONDS, RULE_LOG_TTL_DAYS } from "../../../common/limits.ts";
import type { SystemClass } from "../objects/index.ts";

/** What a rule has to say while it parses: above all, which records it could not make anything of. */
export const RULE_LOG_CLASS = {
  path: "/consolelog/rule",
  kind: "record",
  columns: [
    { name: "name", type: "varchar", title: "Rule" },
    { name: "level", type: "int", title: "Level" },
    { name: "msg", type: "text", title: "Message" },
    { name: "host", type: "varchar", title: "Host" },
    { name: "source", type: "varchar", title: "Source" },
    { name: "raw", type: "text", title: "Raw record, as far as it is kept" },
    { name: "count", type: "bigint", title: "Records this stands for" },
  ],
  indexes: ["name", "level", "host"],
  options: { ttlSeconds: RULE_LOG_TTL_DAYS * DAY_SECONDS },
  guard: {},
} as const satisfies SystemClass;

/** Level numbers of console logs. */
export const LEVEL_ERROR = 4;
