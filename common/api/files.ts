import { Type } from "typebox";
import { FILE_LIST_PAGE_MAX } from "../limits.ts";
import { having, oneOfWords, PATH_BELOW } from "./documented.ts";

const FILE_QUESTION = oneOfWords(["dir", "file", "open", "download", "check", "attr", "tag"]);
const Below = Type.String({ documented: PATH_BELOW, description: "Path of the file or folder" });
const Path = {
  "*": Below,
  issys: Type.Optional(
    Type.Boolean({ description: "In the system's space, not in the users'. For administrators only" }),
  ),
};
const PageOfFolder = {
  limit: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: FILE_LIST_PAGE_MAX,
      description:
        "Only with type=dir: a page of at most so many entries, in the order of names. All entries, in no order, when absent",
    }),
  ),
  after: Type.Optional(
    Type.String({
      description:
        "Only with limit: the member next of the answer's meta, for the page behind it. Absent: the first page",
    }),
  ),
};
const Notes = {
  attr: Type.Optional(Type.String({ description: "Attributes: the JSON text of an object, empty for none" })),
  tags: Type.Optional(Type.Array(Type.String(), { description: "Tags of the file or folder" })),
  index: Type.Optional(
    Type.Boolean({
      description:
        "true: include the content in the search, now and after later writes; of a folder all files below. false: take the file out of it. Absent: as it was",
    }),
  ),
};

export const FilePath = Type.Object(Path);

export const ServedPath = Type.Object({
  "*": Below,
  issys: Type.Optional(
    Type.Boolean({
      description:
        "In the system's space only, for administrators. Otherwise in the users' space first, then in the system's",
    }),
  ),
});

const SearchQuestion = {
  issys: Path.issys,
  ...PageOfFolder,
  type: Type.Optional(Type.String({ description: "Without query, as of /fs/*", documented: FILE_QUESTION })),
  query: Type.Optional(
    Type.String({
      description: "Words, and phrases in quotes, that one passage of a content has to contain. `web*` is a beginning",
    }),
  ),
};

/** Without `query`, files and folders whose path begins with `search` are read. */
export const FileSearch = Type.Object({ ...Path, ...SearchQuestion });
export const RootSearch = Type.Object(SearchQuestion);

/** A place in a file where the words of a query are found. */
export const FoundPlace = Type.Object({
  path: Type.String({ description: "Path of the file" }),
  name: Type.String({ description: "Last part of the path" }),
  position: Type.Number({
    description: "Number of the line, from 1; of a docx of the paragraph, of an xlsx of the row, of a pdf of the page",
  }),
  excerpt: Type.String({ description: "The line, or a part of it; plain text without marks" }),
  score: Type.Number({ description: "From 0 to 1; the rows are ordered by it, the best first" }),
});

/** Numbers of files. The warnings name files that are not found. */
export const FileIndexing = Type.Object({
  indexed: Type.Number({ description: "Files whose whole content is found" }),
  unindexed: Type.Number({ description: "Files whose content, or a part of it, is not found" }),
});
export const RootIndexing = Type.Object({ issys: Path.issys });

export const FileRead = Type.Object({
  ...Path,
  ...PageOfFolder,
  index: Type.Optional(Type.Boolean({ description: "Without effect: clients of earlier versions send it" })),
  type: Type.Optional(
    Type.String({
      description:
        "dir: what lies in the folder; file: the text as message; open, download: the bytes; check: whether it is there; attr: its attributes, JSON text; tag: its tags. open when absent",
      documented: FILE_QUESTION,
    }),
  ),
});

const FileContent = {
  ...Path,
  ...Notes,
  data: Type.Optional(
    Type.String({ description: "The content. Absent: a file that is there keeps its own, a new one is empty" }),
  ),
  type: Type.Optional(
    Type.String({ description: "dir: a folder; attr, tag: set only these; else the type of the file, its extension" }),
  ),
};

const FOLDER = { properties: { type: { enum: ["dir"] } }, required: ["type"] };
const NOTE = (type: string, member: string) => ({
  properties: { type: { enum: [type] }, [member]: {} },
  required: ["type", member],
});
const WRITTEN = [having("data"), FOLDER, NOTE("attr", "attr"), NOTE("tag", "tags")];

/** The content is in the member that belongs to the type. */
export const FileWrite = Type.Object(FileContent, { documented: { anyOf: WRITTEN } });
/** As `FileWrite`, or with files. */
export const FileUpload = Type.Object(FileContent, {
  documented: { anyOf: [...WRITTEN, having("uploadfile")] },
});

export const FileMove = Type.Object({
  srcpath: Type.String({ documented: PATH_BELOW, description: "Path of the file or folder" }),
  dstpath: Type.String({
    description: "Of rename the whole new path, of copy and move the folder",
    documented: PATH_BELOW,
  }),
  issys: Path.issys,
});

const Import = {
  issys: Path.issys,
  depth: Type.Optional(
    Type.Integer({ minimum: 1, description: "Levels of the paths in the answer. Whole paths when absent" }),
  ),
  encoding: Type.Optional(
    Type.String({ description: "Encoding of names for which the archive states none, as gbk. utf-8 when absent" }),
  ),
};

export const FileImport = Type.Object(Import);

export const FileExport = Type.Object(
  {
    ...Import,
    srcpath: Type.Optional(
      Type.Array(Type.String(), { description: "Files and folders to pack, each under its whole path" }),
    ),
    responseType: Type.Optional(
      Type.String({ description: "How a client keeps the bytes. The answer is the same: the archive" }),
    ),
  },
  { documented: { anyOf: [having("srcpath"), having("uploadfile")] } },
);

/** First the folder that contains everything, then what was unpacked. */
export const FileImportAnswer = Type.Array(Type.String());

/** The root folder has no path of its own. */
export const RootRead = Type.Object(
  {
    issys: Path.issys,
    ...PageOfFolder,
    index: Type.Optional(Type.Boolean({ description: "Without effect: clients of earlier versions send it" })),
    type: Type.Optional(
      Type.String({
        description: "dir: what lies in the folder; check: whether it is there",
        documented: oneOfWords(["dir", "check"]),
      }),
    ),
  },
  { documented: { required: ["type"] } },
);
export const RootWrite = Type.Omit(FileWrite, ["*"]);

/** One file or folder of a listing. */
export const FileRecord = Type.Object({
  id: Type.String({ description: "Id of the file as an object" }),
  class: Type.String({ description: "Class of the file as an object" }),
  name: Type.String({ description: "Last part of the path" }),
  parent: Type.String({ description: "Path of the folder that it is in" }),
  fullname: Type.String({ description: "Whole path" }),
  ftype: Type.String({ description: "dir for a folder" }),
  isdir: Type.Boolean({ description: "True for a folder" }),
  attr: Type.String({ description: "JSON text, or empty" }),
  size: Type.Number({ description: "Bytes of the content; 0 for a folder" }),
  ctime: Type.Number({ description: "Milliseconds" }),
  mtime: Type.Number({ description: "Last change of the content, milliseconds" }),
  vtime: Type.Number({ description: "Last change of the content, its attributes or tags, milliseconds" }),
  owner: Type.String({ description: "User who wrote the content, or made the folder; empty if rules hide it" }),
  username: Type.String({ description: "The same as owner" }),
  status: Type.String({
    description:
      "Search in the content: empty for a file that is not included, indexed, indexing, or why it, or a part of it, is not found",
  }),
  tags: Type.Array(Type.String(), { description: "Tags of the file or folder" }),
  ispublic: Type.Boolean({ description: "Always false" }),
  revision: Type.String({ description: "For If-Match of a change" }),
  digest: Type.Optional(
    Type.String({
      description: "SHA-256 of the content in hexadecimal digits. Absent for a folder, and if rules hide it",
    }),
  ),
});

export const FileAnswer = Type.Union([
  Type.String(),
  Type.Boolean(),
  Type.Array(Type.String()),
  Type.Array(FileRecord),
]);
