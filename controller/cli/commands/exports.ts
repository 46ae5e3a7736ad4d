import type { RequestOf } from "../../../common/client/index.ts";
import { AppError } from "../../../common/errors.ts";
import { counted } from "../../../common/text/counted.ts";
import type { Call } from "../declared/call.ts";
import type { CommandDeclaration } from "../declared/declaration.ts";
import { UsageError } from "../declared/usage.ts";
import { writeWhole } from "../whole-file.ts";
import { CLASS } from "./words.ts";

/** `odp export` */
export const EXPORT_COMMANDS: CommandDeclaration = {
  name: "export",
  summary: "write the definition and the objects of a class, as MQL or as a workbook",
  details:
    "With --file, the file appears under its name once all of it is there: a failed or interrupted export leaves what was there before. The standard output gets the export as it comes, so look at the exit code.",
  arguments: [{ ...CLASS, summary: "path of the class; default: the whole tenant", isOptional: true }],
  flags: [
    {
      name: "file",
      short: "f",
      value: "path",
      summary: "file to write; - and default: the standard output",
      completes: "files",
    },
    { name: "below", summary: "also the classes below it" },
    { name: "xlsx", summary: "a workbook, in place of MQL" },
    { name: "times", summary: "with the times of objects, their earlier states and removals" },
    { name: "definitions", summary: "no objects" },
    { name: "limit", value: "n", summary: "objects of each class; default: all" },
    { name: "without", value: "column", summary: "leave a column or type of edge out", isRepeated: true },
  ],
  examples: ["odp export /acme/log --below -f log.mql", "odp export /acme/host --xlsx -f hosts.xlsx"],
  run: exportClass,
};

async function exportClass(call: Call): Promise<void> {
  const { shell } = call;
  const [query, given] = [queryOf(call), call.optional("file")];
  const file = given === "-" ? undefined : given;
  if (call.is("xlsx") && file === undefined) throw new UsageError("A workbook needs a file: add --file <path>.");
  const client = await shell.client();
  const download = await client.download("getMxobjectExport", { query }, { signal: shell.ended() });
  for (const warning of download.warnings) shell.note(`warning: ${warning}`);
  const content = complete(download, download.length);
  if (file === undefined) {
    for await (const piece of content) if (!(await shell.write(piece))) return;
    return;
  }
  shell.note(`${file}: ${counted(await writeWhole(file, content, shell.random), "byte")}`);
}

function queryOf(call: Call): NonNullable<RequestOf<"getMxobjectExport">["query"]> {
  const [path, limit, without] = [call.optional("class"), call.number("limit"), call.list("without")];
  if (call.is("below") && path === undefined)
    throw new UsageError("--below needs a class; without one all are exported.");
  if (call.is("definitions") && limit !== undefined) throw new UsageError("Give one of --definitions and --limit.");
  if (call.is("xlsx") && call.is("times")) throw new UsageError("A workbook has no times: leave --times out.");
  return {
    ...(path !== undefined && { class: path }),
    ...(call.is("below") && { recursive: true }),
    ...(call.is("xlsx") && { filetype: "xlsx" }),
    ...(call.is("times") && { times: true }),
    ...(call.is("definitions") && { template: true }),
    ...(limit !== undefined && { limit }),
    ...(without.length > 0 && { ignorefields: without.join(",") }),
  };
}

/** The same pieces. `AppError("unavailable")` at the end if they are fewer bytes than was told. */
async function* complete(pieces: AsyncIterable<Uint8Array>, length: number | undefined): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  for await (const piece of pieces) {
    bytes += piece.length;
    yield piece;
  }
  if (length !== undefined && bytes !== length)
    throw new AppError("unavailable", `The export broke off after ${bytes} of ${length} bytes. Run the command again.`);
}
