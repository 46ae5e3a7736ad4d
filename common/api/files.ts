import { Type } from "typebox";

const Flag = Type.Optional(Type.Boolean());

export const FilePath = Type.Object({ "*": Type.String(), issys: Flag });

export const FileRead = Type.Object({
  "*": Type.String(),
  issys: Flag,
  type: Type.Optional(
    Type.String({ description: "file: the text as message; open, download: the bytes; check: whether it is there" }),
  ),
});

export const FileWrite = Type.Object({
  "*": Type.String(),
  issys: Flag,
  data: Type.String({ description: "The new content" }),
});
