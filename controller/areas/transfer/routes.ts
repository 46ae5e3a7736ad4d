import { Readable } from "node:stream";
import { Type, type Static } from "typebox";
import {
  ExportInput,
  ImportInput,
  type ScriptImportInput,
  SheetReport,
  WorkbookImportInput,
} from "../../../common/api/transfer.ts";
import { AppError } from "../../../common/errors.ts";
import { endpoint, type Answer, type Call, type Endpoint, type UploadedFile } from "../../http/interface/endpoint.ts";
import type { ExportService } from "./export.ts";
import { planned, scriptUpload, workbookUpload, type ImportPlan, type ImportService, type Upload } from "./import.ts";
import type { ExportRequest } from "./types.ts";

const WORKBOOK_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
const EXPORTED = {
  content: { "text/plain": { summary: "An MQL script" }, [WORKBOOK_TYPE]: { summary: "A workbook" } },
  only: true,
} as const;

export function transferRoutes({
  exports,
  imports,
}: {
  readonly exports: ExportService;
  readonly imports: ImportService;
}): readonly Endpoint[] {
  const take = {
    method: "POST",
    permission: "objects:write",
    body: "multipart",
    uploads: "one",
    output: SheetReport,
  } as const;
  return [
    endpoint({
      method: "GET",
      path: "/mxobject/export",
      permission: "objects:read",
      summary: "Classes and objects as a file that can be imported",
      input: ExportInput,
      output: Type.String(),
      bare: EXPORTED,
      handler: (call) => exported(exports, call),
    }),
    endpoint({
      ...take,
      path: "/mxobject/import",
      summary:
        "Takes an MQL script in, or a CSV file or workbook with a heading line into one class: checked as a whole, then written",
      input: ImportInput,
      handler: async (call: Call<Static<typeof ImportInput>>) => answerOf(await imported(imports, call)),
    }),
    endpoint({
      ...take,
      path: "/mxobject/importclass",
      summary: "Takes the classes and objects of a spreadsheet in, as an export makes it",
      input: WorkbookImportInput,
      handler: async (call: Call<Static<typeof WorkbookImportInput>>) => answerOf(await workbookTaken(imports, call)),
    }),
  ];
}

type Taken = SheetReport & Pick<ImportPlan, "warnings">;

function answerOf({ warnings, ...message }: Taken): Answer<SheetReport> {
  return { message, ...(warnings && { warnings }) };
}

/** Parameters that are only for sheets with a heading line. */
const OF_SHEETS = ["columns", "delimiter", "sheet"] as const;

async function imported(imports: ImportService, call: Call<Static<typeof ImportInput>>): Promise<Taken> {
  const { principal, input, files, signal } = call;
  if (input.class !== undefined && input.root !== undefined)
    throw new AppError("invalid", "[Valid] root= is for scripts and exports: class= says where a table goes.");
  if (input.class !== undefined && input.times === true)
    throw new AppError("invalid", "[Valid] times= is for scripts: a table has no earlier states.");
  if (input.class !== undefined) {
    const report = await imports.sheet(principal, onlyFile(files), { ...input, class: input.class, signal });
    const { columns, changes, ...rest } = report;
    return { ...rest, columns: [...columns], ...(changes && { changes: [...changes] }) };
  }
  const stray = OF_SHEETS.find((name) => input[name] !== undefined);
  if (stray !== undefined)
    throw new AppError("invalid", `[Valid] ${stray}= is for a file with a heading line: name its class by class=.`);
  return taken(imports, scriptUpload(onlyFile(files), input.encoding), call);
}

async function workbookTaken(imports: ImportService, call: Call<Static<typeof ScriptImportInput>>): Promise<Taken> {
  if (call.input.times === true)
    throw new AppError("invalid", "[Valid] A spreadsheet has no times and no earlier states: times= is for scripts.");
  return taken(imports, workbookUpload(onlyFile(call.files)), call);
}

async function taken(
  imports: ImportService,
  upload: Upload,
  { principal, input: { wait, plan, root, times }, signal }: Call<Static<typeof ScriptImportInput>>,
): Promise<Taken> {
  if (plan === true) return planned(await imports.plan(principal, upload, { root, times, signal }));
  return imports.import(principal, upload, { ...(wait !== undefined && { wait }), root, times, signal });
}

async function exported(exports: ExportService, { principal, input, signal }: Call<ExportInput>) {
  const name = (input.class ?? "").replace(/\/+$/, "").split("/").at(-1) || "export";
  const type = input.filetype?.toLowerCase() || "mql";
  if (type === "xlsx") {
    if (input.times === true)
      throw new AppError(
        "invalid",
        "[Valid] A spreadsheet has no times and no earlier states: times= is for filetype=mql.",
      );
    const content = await begun(await exports.workbook(principal, requestOf(input, signal)));
    return { content, contentType: WORKBOOK_TYPE, filename: `${name}.xlsx` };
  }
  if (type !== "mql") throw new AppError("invalid", `[Valid] filetype=${type}: it is mql or xlsx.`);
  const content = await begun(await exports.script(principal, requestOf(input, signal)));
  return { content, contentType: "text/plain; charset=utf-8", filename: `${name}.mql` };
}

function requestOf(input: ExportInput, signal: AbortSignal): ExportRequest {
  const isTemplate = input.template === true || input.templdate === true;
  return {
    ...(input.class === undefined ? {} : { class: input.class }),
    recursive: input.recursive ?? false,
    ...(isTemplate ? { limit: 0 } : input.limit === undefined ? {} : { limit: input.limit }),
    ignoredFields: listed(input.ignorefields),
    ignoredClasses: listed(input.ignoreclass).map((path) => path.replace(/\/+$/, "")),
    relations: input.relation_defined ?? false,
    times: input.times ?? false,
    signal,
  };
}

function listed(text: string | undefined): readonly string[] {
  return (text ?? "")
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "");
}

/** Waits for the first piece, so that most failures can still be answered with an error. */
async function begun<T>(pieces: AsyncIterable<T>): Promise<Readable> {
  const iterator = pieces[Symbol.asyncIterator]();
  const first = await iterator.next();
  return Readable.from(continued(first, iterator), { objectMode: false, highWaterMark: 1 });
}

async function* continued<T>(first: IteratorResult<T>, rest: AsyncIterator<T>): AsyncGenerator<T> {
  try {
    for (let next = first; next.done !== true; next = await rest.next()) yield next.value;
  } finally {
    await rest.return?.();
  }
}

function onlyFile(files: readonly UploadedFile[]): UploadedFile {
  const [file, second] = files.filter(({ filename, size }) => filename !== "" || size > 0);
  if (file && !second) return file;
  throw new AppError("invalid", `[Valid] An import takes one file as uploadfile, not ${files.length}.`);
}
