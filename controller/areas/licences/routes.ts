import { readFile } from "node:fs/promises";
import { LicenceImport, LicenceName, LicenceView } from "../../../common/api/licences.ts";
import { AppError } from "../../../common/errors.ts";
import { LICENCE_MAX_BYTES } from "../../../common/limits.ts";
import { endpoint, type Endpoint, type MessageAnswer, type UploadedFile } from "../../http/interface/endpoint.ts";
import type { LicenceInfo, Licences, LicenceView as Shown } from "./types.ts";

export function licenceRoutes(licences: Licences): readonly Endpoint[] {
  return [
    endpoint({
      method: "POST",
      path: "/license/import",
      permission: "licences:write",
      summary: "Imports the licence of the tenant that it names",
      input: LicenceImport,
      output: LicenceView,
      body: "multipart",
      uploads: "one",
      handler: async ({ principal, files }) => answer(await licences.importDocument(principal, await textOf(files))),
    }),
    endpoint({
      method: "GET",
      path: "/license/info/:name",
      permission: "licences:read",
      summary: "The licence of a tenant; -1 everywhere without one",
      input: LicenceName,
      output: LicenceView,
      handler: async ({ principal, input }) => answer(await licences.info(principal, input.name)),
    }),
  ];
}

function answer({ licence, warnings }: LicenceInfo): MessageAnswer<Shown> {
  return { message: { ...licence }, ...(warnings.length > 0 && { warnings }) };
}

async function textOf(files: readonly UploadedFile[]): Promise<string> {
  const [file, second] = files.filter(({ filename, size }) => filename !== "" || size > 0);
  if (!file || second) throw new AppError("invalid", `An import takes one file as uploadfile, not ${files.length}.`);
  if (file.size > LICENCE_MAX_BYTES)
    throw new AppError("too_large", `A licence has at most ${LICENCE_MAX_BYTES} bytes.`, {
      details: { limit: "LICENCE_MAX_BYTES" },
    });
  return readFile(file.path, "utf8");
}
