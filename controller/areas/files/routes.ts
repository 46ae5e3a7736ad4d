import { Type } from "typebox";
import type { Static } from "typebox";
import {
  FileAnswer,
  FileMove,
  FilePath,
  FileRead,
  FileWrite,
  RootRead,
  RootWrite,
  type FileRecord,
} from "../../../common/api/files.ts";
import { AppError } from "../../../common/errors.ts";
import { relativePath } from "../../../common/paths.ts";
import { endpoint, type Answer, type Call, type Endpoint, type UploadedFile } from "../../http/endpoint.ts";
import type { Principal } from "../permissions/index.ts";
import { FILE_CLASS } from "./classes.ts";
import { CONTENT_STATUSES, contentAnswer } from "./content-routes.ts";
import type { FileEntry } from "./entries.ts";
import { nameOf, parentOf, type FileName, type Space } from "./names.ts";
import type { FileNotes } from "./notes.ts";
import type { FileService } from "./service.ts";

export function fileRoutes(files: FileService): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/fs/*",
      permission: "files:read",
      summary: "Read a file or what is kept of it, list a folder, or ask whether it is there",
      input: FileRead,
      output: FileAnswer,
      statuses: CONTENT_STATUSES,
      handler: (call) => read(files, call),
    }),
    endpoint({
      method: "PUT",
      path: "/fs/*",
      permission: "files:write",
      summary: "Write a text file, make a folder, or set attributes or tags",
      input: FileWrite,
      output: Type.String(),
      body: "multipart",
      handler: async ({ principal, input }) => {
        await write(files, principal, input);
        return { message: "" };
      },
    }),
    endpoint({
      method: "POST",
      path: "/fs/*",
      permission: "files:write",
      summary: "Upload files into a folder; without any, as PUT",
      input: FileWrite,
      output: Type.String(),
      body: "multipart",
      handler: async ({ principal, input, files: uploads }) => {
        if (uploads.length > 0) await upload(files, principal, { input, uploads });
        else if (input.data === undefined && input.type === undefined) throw noUpload();
        else await write(files, principal, input);
        return { message: "" };
      },
    }),
    endpoint({
      method: "GET",
      path: "/fs",
      permission: "files:read",
      summary: "List the root folder",
      input: RootRead,
      output: FileAnswer,
      statuses: CONTENT_STATUSES,
      handler: (call) => read(files, { ...call, input: { ...call.input, "*": "/" } }),
    }),
    endpoint({
      method: "POST",
      path: "/fs",
      permission: "files:write",
      summary: "Upload files into the root folder",
      input: RootWrite,
      output: Type.String(),
      body: "multipart",
      handler: async ({ principal, input, files: uploads }) => {
        if (uploads.length === 0) throw noUpload();
        await upload(files, principal, { input: { ...input, "*": "/" }, uploads });
        return { message: "" };
      },
    }),
    endpoint({
      method: "DELETE",
      path: "/fs/*",
      permission: "files:write",
      summary: "Remove a file, or a folder with all below it",
      input: FilePath,
      output: Type.String(),
      handler: async ({ principal, input }) => {
        await files.remove(principal, fileName(input));
        return { message: "" };
      },
    }),
    ...(["rename", "copy", "move"] as const).map((verb) =>
      endpoint({
        method: "POST",
        path: `/fs/${verb}`,
        permission: "files:write",
        summary: SUMMARIES[verb],
        input: FileMove,
        output: Type.String(),
        body: "form",
        handler: async ({ principal, input: { srcpath, dstpath, issys } }) => {
          await files[verb](principal, { path: srcpath, space: spaceOf(issys) }, dstpath);
          return { message: "" };
        },
      }),
    ),
    endpoint({
      method: "GET",
      path: "/static/*",
      permission: "files:read",
      summary: "The bytes of a file for browsers, by the type of its name",
      input: FilePath,
      output: Type.String(),
      statuses: CONTENT_STATUSES,
      handler: ({ principal, input, client }) => contentAnswer(files, { principal, name: fileName(input), client }),
    }),
  ];
}

const SUMMARIES = {
  rename: "Give a file or folder a whole new path",
  copy: "Copy a file, or a folder with all below it, into a folder",
  move: "Move a file, or a folder with all below it, into a folder",
} as const;

function spaceOf(issys: boolean | undefined): Space {
  return issys ? "system" : "user";
}

function fileName({ "*": path, issys }: Static<typeof FilePath>): FileName {
  return { path, space: spaceOf(issys) };
}

async function read(
  files: FileService,
  { principal, input, client, signal }: Call<Static<typeof FileRead>>,
): Promise<Answer<Static<typeof FileAnswer>>> {
  const name = fileName(input);
  switch (input.type ?? "open") {
    case "check":
      return { message: await files.exists(principal, name) };
    case "file":
      return { message: (await files.read(principal, name.path, name.space)).text };
    case "attr":
      return { message: (await files.about(principal, name)).attr };
    case "tag":
      return { message: [...(await files.about(principal, name)).tags] };
    case "dir":
      return { rows: records(principal, files.list(principal, name, signal)) };
    case "open":
      return contentAnswer(files, { principal, name, client });
    case "download":
      return contentAnswer(files, { principal, name, client, isDownload: true });
    default:
      throw new AppError("invalid", "type is one of dir, file, attr, tag, open, download and check.");
  }
}

async function* records(
  { ospace }: Principal,
  pages: AsyncIterable<readonly FileEntry[]>,
): AsyncGenerator<readonly Static<typeof FileRecord>[]> {
  for await (const page of pages) yield page.map((entry) => record(ospace, entry));
}

function record(ospace: string, entry: FileEntry): Static<typeof FileRecord> {
  const { id, fullname, content, ftype, attr, size, owner, tags } = entry;
  return {
    id,
    class: `${ospace}${FILE_CLASS.path}`,
    name: nameOf(fullname),
    parent: parentOf(fullname),
    fullname,
    ftype,
    isdir: content === undefined,
    attr,
    size,
    ctime: entry.createdMs,
    mtime: entry.modifiedMs,
    vtime: entry.versionMs,
    owner,
    username: owner,
    status: "",
    tags: [...tags],
    ispublic: false,
  };
}

interface Upload {
  readonly input: Static<typeof FileWrite>;
  readonly uploads: readonly UploadedFile[];
}

async function upload(files: FileService, principal: Principal, { input, uploads }: Upload): Promise<void> {
  const { path, space } = fileName(input);
  const notes: FileNotes = { attr: input.attr, tags: input.tags };
  for (const { filename, path: file } of uploads)
    await files.write(principal, { path: `${path}/${relativePath(filename)}`, space }, { file }, notes);
}

function noUpload(): AppError {
  return new AppError("invalid", "There is no part uploadfile in the form.");
}

async function write(files: FileService, principal: Principal, input: Static<typeof FileWrite>): Promise<void> {
  const { type, data, attr, tags } = input;
  const name = fileName(input);
  if (type === "dir") return files.makeFolder(principal, name, { attr, tags });
  if (type === "attr") return files.note(principal, name, { attr: attr ?? "" });
  if (type === "tag") return files.note(principal, name, { tags: tags ?? [] });
  await files.write(principal, name, data === undefined ? undefined : { text: data }, { ftype: type, attr, tags });
}
