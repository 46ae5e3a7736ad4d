import { Type, type Static } from "typebox";

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
  filetype: Type.Optional(Type.String({ description: "mql (default) or xlsx" })),
  template: Flag("Definitions only"),
  templdate: Flag("The same as template"),
  ignorefields: Names("Columns and edge types that are left out, separated by commas"),
  ignoreclass: Names("Class paths that are left out with their subclasses, separated by commas"),
  relation_defined: Flag("Defines the edge types as well"),
});
export type ExportInput = Static<typeof ExportInput>;

export const ImportInput = Type.Object({
  wait: Flag("false: answers when the import is on record, and it goes on by itself"),
  root: Type.Optional(
    Type.String({
      description:
        "An ospace or a class path that takes the place of the ospace of all classes in the upload: with /second/copy, /matrix/host becomes /second/copy/host",
    }),
  ),
});

export const TransferReport = Type.Object({
  id: Type.String({ description: "Of the object transfer:<id> that tells how far it is" }),
  state: Type.String({ description: "running, done or failed" }),
  total: Type.Integer({ description: "Statements" }),
  done: Type.Integer({ description: "Statements that are written" }),
  message: Type.String(),
});
