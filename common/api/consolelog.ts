import { Type } from "typebox";
import { CONSOLE_LOG_NAME_MAX_CHARACTERS, CONSOLE_LOG_PAGE_MAX_ROWS, CONSOLE_LOG_PAGE_ROWS } from "../limits.ts";
import { oneOfWords } from "./documented.ts";

/** Schemas of `/consolelog/<kind>`. */

const Name = Type.String({
  minLength: 1,
  maxLength: CONSOLE_LOG_NAME_MAX_CHARACTERS,
  description: "Configuration key of a rule, path of a script, `<class>#<trigger>`",
});
const LEVEL = oneOfWords([..."0123456", "trace", "debug", "info", "warn", "error", "fatal", "panic"]);
const Levels = Type.Array(Type.String({ documented: LEVEL }), {
  description: "Numbers 0 to 6 or English names; all when absent",
});
const TimeMs = Type.Integer({ minimum: 0, description: "Milliseconds since 1970; belongs to the range" });
const Position = Type.String({ description: "As an earlier read with the same name, levels and times answered it" });

const selection = {
  name: Name,
  level: Type.Optional(Levels),
  levels: Type.Optional(Levels),
  mintime: Type.Optional(TimeMs),
  maxtime: Type.Optional(TimeMs),
  position: Type.Optional(Position),
};

export const ConsoleLogFollow = Type.Object(selection);

export const ConsoleLogRead = Type.Object({
  ...selection,
  limit: Type.Integer({
    minimum: 1,
    maximum: CONSOLE_LOG_PAGE_MAX_ROWS,
    default: CONSOLE_LOG_PAGE_ROWS,
    description: "Entries in a page",
  }),
});

export const ConsoleLogName = Type.Object({ name: Name });

const TimeText = (description: string) =>
  Type.String({ description: `${description}; ISO 8601 with milliseconds and zone, such as 2024-05-06T07:08:09.123Z` });

/** A member that the reader may not see is absent. */
const ConsoleLogEntry = Type.Object({
  edtime: TimeText("Time of the entry"),
  sttime: Type.Optional(TimeText("Begin of the run that wrote the entry; time of the raw record that failed")),
  level: Type.Optional(Type.Integer({ description: "0 trace, 1 debug, 2 info, 3 warn, 4 error, 5 fatal, 6 panic" })),
  msg: Type.Optional(Type.String({ description: "Text of the message" })),
  host: Type.Optional(
    Type.String({ description: "Host with the record that was parsed; absent for messages of scripts" }),
  ),
  source: Type.Optional(Type.String({ description: "File or policy of the record; absent for messages of scripts" })),
  raw: Type.Optional(Type.String({ description: "Raw record, as far as it is kept" })),
  count: Type.Optional(Type.Integer({ description: "Records this stands for" })),
});

export const ConsoleLogPage = Type.Object({
  logs: Type.Array(ConsoleLogEntry, { description: "The oldest first" }),
  position: Type.String({ description: "The next read goes on behind these" }),
});
