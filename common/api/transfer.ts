import { Type, type Static } from "typebox";
import { CLASS_PATH, ENCODING, having, without } from "./documented.ts";

const Flag = (description: string) => Type.Optional(Type.Boolean({ description }));
const Names = (description: string) => Type.Optional(Type.String({ description }));

export const ExportInput = Type.Object({
  class: Type.Optional(
    Type.String({
      description: "A class path; with a slash at its end with its subclasses. The whole tenant when absent",
    }),
  ),
  recursive: Flag("With all subclasses"),
  limit: Type.Optional(
    Type.Integer({ description: "Objects of each class at most; 0: definitions only; -1 or absent: all" }),
  ),
  filetype: Type.Optional(
    Type.String({
      description: "mql (default) or xlsx",
      documented: { pattern: "^([Mm][Qq][Ll]|[Xx][Ll][Ss][Xx])?$" },
    }),
  ),
  template: Flag("Definitions only"),
  templdate: Flag("The same as template"),
  ignorefields: Names(
    "Columns and edge types that are left out, separated by commas; with a column of a class of records also its _rawbytes",
  ),
  ignoreclass: Names("Class paths that are left out with their subclasses, separated by commas"),
  relation_defined: Flag("Defines the edge types as well"),
  times: Flag("With the times of objects, their earlier states and removals, for an import with times=true; mql only"),
});
export type ExportInput = Static<typeof ExportInput>;

export const ScriptImportInput = Type.Object({
  wait: Flag("false: answers when the import is on record, and it goes on by itself"),
  root: Type.Optional(
    Type.String({
      description:
        "An ospace or a class path that takes the place of the ospace of all classes in the upload: with /second/copy, /matrix/host becomes /second/copy/host",
      documented: CLASS_PATH,
    }),
  ),
  plan: Flag("Only checks, and tells what would be done"),
  times: Flag(
    "Objects get their former times and earlier states back, as an export with times=true has them; else all are new writes",
  ),
});

/** A spreadsheet has no times. */
export const WorkbookImportInput = Type.Object(
  {
    ...ScriptImportInput.properties,
    times: Type.Optional(Type.Boolean({ description: "Only for scripts" })),
  },
  { documented: { not: { properties: { times: { enum: [true] } }, required: ["times"] } } },
);

/** A file with a heading line names its class, and has neither another root nor times; a script has no columns. */
const KINDS = [{ ...having("class"), ...without("root", "times") }, without("class", "columns", "delimiter", "sheet")];

export const ImportInput = Type.Object(
  {
    ...ScriptImportInput.properties,
    class: Type.Optional(
      Type.String({
        description: "Path of the class that a CSV file, or a sheet of a workbook, with a heading line goes into",
      }),
    ),
    columns: Type.Optional(
      Type.Record(Type.String(), Type.Union([Type.String(), Type.Null()]), {
        description:
          "Columns by heading, as JSON; an empty name leaves a heading out. Other headings are taken for the column of their name or title, without regard to case, spaces, _ and -",
      }),
    ),
    delimiter: Type.Optional(
      Type.String({
        description:
          "Character between the values of a CSV file, or tab; of , ; and tab the most frequent one of the heading line when absent",
      }),
    ),
    encoding: Type.Optional(
      Type.String({
        description: "Encoding of a script or CSV file, such as windows-1252, gbk or utf-16le; UTF-8 when absent",
        documented: ENCODING,
      }),
    ),
    sheet: Type.Optional(
      Type.String({ description: "Name of the sheet of a workbook; the only one with rows when absent" }),
    ),
  },
  { documented: { anyOf: KINDS } },
);

export const TransferReport = Type.Object({
  id: Type.String({ description: "Of the object transfer:<id> that tells how far it is" }),
  state: Type.String({ description: "running, done or failed" }),
  total: Type.Integer({ description: "Statements" }),
  done: Type.Integer({ description: "Statements that are written" }),
  message: Type.String({ description: "Reason of a failure; empty otherwise" }),
});

export const SheetReport = Type.Object({
  ...TransferReport.properties,
  state: Type.String({ description: "running, done or failed; planned of a plan, whose id is empty" }),
  columns: Type.Optional(
    Type.Array(
      Type.Object({
        heading: Type.String({ description: "Heading in the file" }),
        column: Type.String({ description: "Empty: left out" }),
        type: Type.Optional(Type.String({ description: "Of the column; id, or relation of an edge type" })),
      }),
      { description: "How the headings of a file were understood" },
    ),
  ),
  delimiter: Type.Optional(Type.String({ description: "Of a CSV file" })),
  encoding: Type.Optional(Type.String({ description: "Of a CSV file" })),
  sheet: Type.Optional(Type.String({ description: "Of a workbook" })),
  created: Type.Optional(Type.Integer({ description: "Of the plan of a file with a heading line: objects" })),
  updated: Type.Optional(Type.Integer({ description: "Likewise" })),
  changes: Type.Optional(
    Type.Array(
      Type.Object({
        row: Type.Integer({ description: "Number of the row in the file, from 1" }),
        id: Type.Optional(Type.String({ description: "Absent: made up with the object" })),
        action: Type.String({ description: "create or update" }),
      }),
      { description: "Of such a plan: the first thousand rows" },
    ),
  ),
});
export type SheetReport = Static<typeof SheetReport>;
