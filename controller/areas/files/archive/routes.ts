import type { Static } from "typebox";
import { FileExport, FileImport, FileImportAnswer } from "../../../../common/api/files.ts";
import { AppError, isAppError } from "../../../../common/errors.ts";
import { FILE_ARCHIVE_CALL_DEADLINE_MS } from "../../../../common/limits.ts";
import { nameEncoding } from "../../../archives/entry-names.ts";
import { endpoint, type Answer, type BareAnswers, type Call, type Endpoint } from "../../../http/interface/endpoint.ts";
import type { Audit } from "../../audit/index.ts";
import type { Space } from "../names.ts";
import type { FileArchives } from "./service.ts";

const ZIP = "application/zip";
const ARCHIVE: BareAnswers = { content: { [ZIP]: { summary: "The bytes of the zip archive" } }, usual: true };

export interface ArchiveParts {
  readonly archives: FileArchives;
  readonly audit: Pick<Audit, "ready" | "record">;
}

export function archiveRoutes({ archives, audit }: ArchiveParts): readonly Endpoint[] {
  return [
    endpoint({
      method: "POST",
      path: "/fs/export",
      permission: "files:read",
      summary: "Pack files, and folders with all below them, into a zip archive. With an archive, as /fs/import",
      input: FileExport,
      output: FileImportAnswer,
      body: "multipart",
      uploads: "optional",
      bare: ARCHIVE,
      deadlineMs: () => FILE_ARCHIVE_CALL_DEADLINE_MS,
      handler: async (call) => {
        const { principal, input, files, signal } = call;
        requireOneAct(input, files);
        if (files.length > 0) return audited(audit, call, () => unpack(archives, call));
        const names = (input.srcpath ?? []).map((path) => ({ path, space: spaceOf(input.issys) }));
        const { bytes, filename } = await archives.export(principal, names, signal);
        return { content: bytes, contentType: ZIP, filename };
      },
    }),
    endpoint({
      method: "POST",
      path: "/fs/import",
      permission: "files:write",
      summary: "Unpack a zip archive at the paths that it states",
      input: FileImport,
      output: FileImportAnswer,
      body: "multipart",
      uploads: "one",
      deadlineMs: () => FILE_ARCHIVE_CALL_DEADLINE_MS,
      handler: (call) => unpack(archives, call),
    }),
  ];
}

/** An export and an import have one path. `AppError("invalid")` for members of both. */
function requireOneAct({ srcpath, depth, encoding }: Static<typeof FileExport>, files: ImportCall["files"]): void {
  if (files.length > 0 && srcpath !== undefined)
    throw new AppError("invalid", "Send either srcpath, to export, or an archive as uploadfile, to import.");
  if (files.length === 0 && (depth ?? encoding) !== undefined)
    throw new AppError("invalid", "depth and encoding belong to an import: send an archive as uploadfile.");
}

type ImportCall = Call<Static<typeof FileImport>>;

async function unpack(
  archives: FileArchives,
  { principal, input, files, signal }: ImportCall,
): Promise<Answer<Static<typeof FileImportAnswer>>> {
  const { depth, issys, encoding } = input;
  const [file, ...others] = files;
  if (!file || others.length > 0)
    throw new AppError("invalid", "Send exactly one zip archive, as the part uploadfile of a multipart form.");
  const upload = { path: file.path, names: nameEncoding(encoding) };
  const imported = await archives.import(principal, upload, { space: spaceOf(issys), depth, signal });
  const { paths, warnings, ...meta } = imported;
  return { message: [...paths], meta, warnings };
}

/** Writes the audit entry of an import by `/fs/export`: calls with a permission to read get none from other code. */
async function audited<T>(
  audit: ArchiveParts["audit"],
  { principal: { tenant, user, traceparent }, client: { remote } }: ImportCall,
  work: () => Promise<T>,
): Promise<T> {
  const entry = { tenant, user, permission: "files:write", action: "POST /fs/export", object: "", remote, traceparent };
  await audit.ready(tenant);
  try {
    const answer = await work();
    await audit.record({ ...entry, outcome: "ok", code: "" });
    return answer;
  } catch (error) {
    const code = isAppError(error) ? error.code : "internal";
    await audit.record({ ...entry, outcome: code === "denied" ? "denied" : "failed", code });
    throw error;
  }
}

function spaceOf(issys: boolean | undefined): Space {
  return issys ? "system" : "user";
}
