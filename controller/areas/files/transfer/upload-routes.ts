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
const INTO_STORE = { body: "multipart", uploads: "optional" } as const;

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
    takeIn: (file) => services.files.takeIn(file.principal, fileName(file.input), file.bytes),
    content: (input, uploads) => (uploads.length > 0 ? [] : contentOf(input)),
    handler: async ({ principal, input, files: uploads }) =>
      written(await write(services, principal, { input, uploads })),
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
      return written(await write(services, call.principal, { input: call.input, uploads: [] }));
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
    handler: async (call) => {
      if (call.files.length === 0) throw noUpload();
      return written(await upload(services, { ...call, input: { ...call.input, "*": "/" } }));
    },
  });
}

function takeInto(files: FileService, { principal, input, filename, bytes }: ArrivingFile<WriteInput>) {
  return files.takeIn(principal, uploadName(input, filename), bytes);
}

/** The names of the members that the type requires. */
function contentOf({ type }: Pick<WriteInput, "type">): readonly string[] {
  if (type === "dir") return [];
  return [type === "attr" ? "attr" : type === "tag" ? "tags" : "data"];
}

function written(warnings: readonly string[]): Answer<string> {
  return { message: "", warnings };
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

/** Writes the uploaded files into the folder. Returns the warnings of `FileService.write` and of the search. */
async function upload(
  { files, search }: Services,
  { principal, input, files: uploads }: Pick<Call<WriteInput>, "principal" | "input" | "files">,
): Promise<readonly string[]> {
  const notes: FileNotes = { attr: input.attr, tags: input.tags };
  const warnings: string[] = [];
  for (const file of uploads) {
    const name = uploadName(input, file.filename);
    warnings.push(...(await files.write(principal, name, contentIn(file), notes)));
    warnings.push(...(await search.written(principal, name, input.index)));
  }
  return warnings;
}

interface Writing {
  readonly input: WriteInput;
  /** At most one file, which is the content. */
  readonly uploads: readonly UploadedFile[];
}

/** Writes a file or makes a folder. Returns the warnings of `FileService.write` and of the search. */
async function write({ files, search }: Services, principal: Principal, writing: Writing): Promise<readonly string[]> {
  const warnings = await writeOne(files, principal, writing);
  return [...warnings, ...(await search.written(principal, fileName(writing.input), writing.input.index))];
}

async function writeOne(
  files: FileService,
  principal: Principal,
  { input, uploads }: Writing,
): Promise<readonly string[]> {
  const { type, attr, tags } = input;
  const name = fileName(input);
  const content = contentOfWrite(input, uploads);
  if (type === "dir") await files.makeFolder(principal, name, { attr, tags });
  else if (type === "attr") await files.note(principal, name, { attr: attr ?? "" });
  else if (type === "tag") await files.note(principal, name, { tags: tags ?? [] });
  else return files.write(principal, name, content, { ftype: type, attr, tags });
  return [];
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
