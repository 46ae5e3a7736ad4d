import { Type, type Static } from "typebox";
import { FileUpload, RootWrite, type FileWrite } from "../../../../common/api/files.ts";
import { AppError } from "../../../../common/errors.ts";
import { relativePath } from "../../../../common/paths.ts";
import {
  endpoint,
  type Answer,
  type ArrivingFile,
  type Call,
  type Endpoint,
  type UploadedFile,
} from "../../../http/interface/endpoint.ts";
import type { Principal } from "../../permissions/index.ts";
import type { FileName } from "../names.ts";
import type { FileNotes } from "../notes.ts";
import type { FileSearchService } from "../search/service.ts";
import type { FileService } from "../service.ts";
import { fileName } from "./addressed.ts";
import { KeptContent } from "./kept-content.ts";
import { refuseVerb, verbIn } from "./verbs.ts";

type WriteInput = Static<typeof FileWrite>;
/** The files of a call go from the network into the store. */
const INTO_STORE = { body: "multipart", uploads: "optional", revised: true, entryInCommit: true } as const;

export interface Services {
  readonly files: FileService;
  readonly search: FileSearchService;
}

/** Endpoints that write files: texts as members of the input, and files of any content as parts of the body. */
export function uploadRoutes(services: Services): readonly Endpoint[] {
  return [putRoute(services), postRoute(services), postRootRoute(services)];
}

function putRoute(services: Services): Endpoint {
  return endpoint({
    method: "PUT",
    path: "/fs/*",
    permission: "files:write",
    summary: "Write a file as a text or as one part of the form, make a folder, or set attributes or tags",
    input: FileUpload,
    output: Type.String(),
    ...INTO_STORE,
    takeIn: (file) => services.files.takeIn(file.principal, fileName(file.input), file),
    content: (input, uploads) => (uploads.length > 0 ? [] : contentOf(input)),
    handler: async ({ principal, input, files: uploads, expected, entry }) =>
      written(await write(services, principal, { input, uploads, expected, entry })),
  });
}

function postRoute(services: Services): Endpoint {
  return endpoint({
    method: "POST",
    path: "/fs/*",
    permission: "files:write",
    summary: "Upload files into a folder; without any, as PUT",
    input: FileUpload,
    output: Type.String(),
    ...INTO_STORE,
    takeIn: (file) => {
      refuseVerb(file.input["*"]);
      return takeInto(services.files, file);
    },
    content: (input, uploads) => (uploads.length > 0 || verbIn(input["*"]) !== undefined ? [] : contentOf(input)),
    handler: async (call) => {
      refuseVerb(call.input["*"]);
      if (call.files.length > 0) return written(await upload(services, call));
      if (call.input.data === undefined && call.input.type === undefined) throw noUpload();
      const { principal, input, expected, entry } = call;
      return written(await write(services, principal, { input, uploads: [], expected, entry }));
    },
  });
}

function postRootRoute(services: Services): Endpoint {
  return endpoint({
    method: "POST",
    path: "/fs",
    permission: "files:write",
    summary: "Upload files into the root folder",
    input: RootWrite,
    output: Type.String(),
    ...INTO_STORE,
    uploads: "one",
    takeIn: (file) => takeInto(services.files, { ...file, input: { ...file.input, "*": "/" } }),
    handler: async ({ principal, input, files, expected, entry }) => {
      if (files.length === 0) throw noUpload();
      return written(await upload(services, { principal, files, expected, entry, input: { ...input, "*": "/" } }));
    },
  });
}

function takeInto(files: FileService, file: ArrivingFile<WriteInput>) {
  return files.takeIn(file.principal, uploadName(file.input, file.filename), file);
}

/** The names of the members that the type requires. */
function contentOf({ type }: Pick<WriteInput, "type">): readonly string[] {
  if (type === "dir") return [];
  return [type === "attr" ? "attr" : type === "tag" ? "tags" : "data"];
}

function written({ revision, warnings }: Written): Answer<string> {
  return { message: "", warnings, revision };
}

function noUpload(): AppError {
  return new AppError("invalid", "There is no part uploadfile in the form.");
}

function uploadName(input: WriteInput, filename: string): FileName {
  const { path, space } = fileName(input);
  return { path: `${path}/${relativePath(filename)}`, space };
}

function contentIn({ taken }: UploadedFile): KeptContent {
  if (!(taken instanceof KeptContent)) throw new Error("The file was not taken in.");
  return taken;
}

interface Written {
  /** Absent after several files. */
  readonly revision: string | undefined;
  readonly warnings: readonly string[];
}

/** Writes the uploaded files into the folder. */
async function upload(
  { files, search }: Services,
  { principal, input, files: uploads, expected, entry }: Pick<Call<WriteInput>, "principal" | "files"> & Writing,
): Promise<Written> {
  if (expected && uploads.length > 1)
    throw new AppError("unsupported", "If-Match and If-None-Match are checked for one file, and several were sent.");
  const notes: FileNotes = { attr: input.attr, tags: input.tags };
  const warnings: string[] = [];
  let revision: string | undefined;
  // The entry is about all files.
  const inCommit = uploads.length === 1 ? entry : undefined;
  for (const file of uploads) {
    const name = uploadName(input, file.filename);
    const saved = await files.save(principal, name, { content: contentIn(file), notes, expected, inCommit });
    warnings.push(...saved.warnings, ...(await search.written(principal, name, input.index)));
    ({ revision } = saved);
  }
  return { revision: uploads.length === 1 ? revision : undefined, warnings };
}

type Writing = Pick<Call<WriteInput>, "input" | "expected" | "entry">;

interface WritingOne extends Writing {
  /** At most one file, which is the content. */
  readonly uploads: readonly UploadedFile[];
}

/** Writes a file, makes a folder, or sets attributes or tags. */
async function write({ files, search }: Services, principal: Principal, writing: WritingOne): Promise<Written> {
  const { revision, warnings } = await writeOne(files, principal, writing);
  const told = await search.written(principal, fileName(writing.input), writing.input.index);
  return { revision, warnings: [...warnings, ...told] };
}

async function writeOne(
  files: FileService,
  principal: Principal,
  { input, uploads, expected, entry }: WritingOne,
): Promise<Written> {
  const { type, attr, tags } = input;
  const name = fileName(input);
  const content = contentOfWrite(input, uploads);
  if (type === "dir") return plain(await files.makeFolder(principal, name, { attr, tags, expected }));
  if (type === "attr") return plain(await files.note(principal, name, { attr: attr ?? "", expected }));
  if (type === "tag") return plain(await files.note(principal, name, { tags: tags ?? [], expected }));
  return files.save(principal, name, { content, notes: { ftype: type, attr, tags }, expected, inCommit: entry });
}

function plain(revision: string): Written {
  return { revision, warnings: [] };
}

/** `AppError("invalid")` if a file is sent where none is written, or in addition to another content. */
function contentOfWrite({ type, data }: WriteInput, uploads: readonly UploadedFile[]) {
  const [file, second] = uploads;
  if (file === undefined) return data === undefined ? undefined : { text: data };
  if (second !== undefined || data !== undefined)
    throw new AppError("invalid", "PUT writes one content: send one file, or data, or POST several files to a folder.");
  if (type === "dir" || type === "attr" || type === "tag")
    throw new AppError("invalid", `With type=${type} no file is written: leave out the type, or the file.`);
  return contentIn(file);
}
