import { readFile } from "node:fs/promises";
import { Type, type Static } from "typebox";
import {
  DepotCreate,
  DepotDifference,
  DepotDiffSelect,
  DepotFileChange,
  DepotFileSelect,
  DepotList,
  DepotRecord,
  DepotRemove,
  DepotSelect,
  DepotSummary,
  DepotUpdate,
} from "../../../common/api/depots.ts";
import { AppError } from "../../../common/errors.ts";
import { DEPOT_TEXT_MAX_BYTES } from "../../../common/limits.ts";
import { endpoint, type Answer, type Call, type Endpoint, type UploadedFile } from "../../http/interface/endpoint.ts";
import { deploymentRoutes } from "./deployment-routes.ts";
import type { DeploymentService } from "./deployment.ts";
import { waitingRoutes } from "./waiting/routes.ts";
import type { WaitingDeployments } from "./waiting/service.ts";
import { nameEncoding } from "../../archives/entry-names.ts";
import type { DepotService } from "./service.ts";
import type { DepotFileChange as DepotFileContent, DepotUpload } from "./types.ts";

interface Services {
  readonly depots: DepotService;
  readonly deployments: DeploymentService;
  readonly waiting: WaitingDeployments;
}

export function depotRoutes({ depots, ...deploying }: Services): readonly Endpoint[] {
  return [
    ...uploadRoutes(depots),
    ...versionRoutes(depots),
    ...fileRoutes(depots),
    ...deploymentRoutes(deploying),
    ...waitingRoutes(deploying.waiting),
  ];
}

function uploadRoutes(depots: DepotService): readonly Endpoint[] {
  return [
    endpoint({
      method: "POST",
      path: "/monitoring/depot",
      permission: "depots:write",
      summary: "Uploads a new depot version",
      body: "multipart",
      uploads: "one",
      input: DepotCreate,
      output: DepotRecord,
      revised: true,
      handler: async ({ principal, input: { encoding, ...description }, files, expected }) =>
        recordOf(await depots.create(principal, description, contentOf(files, encoding), expected)),
    }),
    endpoint({
      method: "PUT",
      path: "/monitoring/depot",
      permission: "depots:write",
      summary: "Changes or adds a depot version",
      body: "multipart",
      uploads: "optional",
      input: DepotUpdate,
      output: DepotRecord,
      revised: true,
      handler: async ({ principal, input: { overwrite = false, encoding, ...description }, files, expected }) =>
        recordOf(
          await depots.update(principal, description, { uploads: contentOf(files, encoding), overwrite, expected }),
        ),
    }),
  ];
}

function versionRoutes(depots: DepotService): readonly Endpoint[] {
  return [
    endpoint({
      method: "GET",
      path: "/monitoring/depot",
      permission: "depots:read",
      summary: "Lists the depots",
      input: DepotList,
      output: Type.Array(DepotSummary),
      handler: async ({ principal }) => ({ message: [...(await depots.list(principal))] }),
    }),
    endpoint({
      method: "GET",
      path: "/monitoring/depot/:name",
      permission: "depots:read",
      summary: "One depot version with its files, the newest by default",
      input: DepotSelect,
      output: DepotRecord,
      revised: true,
      handler: async ({ principal, input }) =>
        recordOf(await depots.get(principal, input.name, input.version || undefined)),
    }),
    endpoint({
      method: "GET",
      path: "/monitoring/depot/exist/:name",
      permission: "depots:read",
      summary: "Whether a depot, or one version of it, exists",
      input: DepotSelect,
      output: Type.Boolean(),
      handler: async ({ principal, input }) => ({
        message: await depots.exists(principal, input.name, input.version || undefined),
      }),
    }),
    endpoint({
      method: "DELETE",
      path: "/monitoring/depot/:name",
      permission: "depots:write",
      summary: "Deletes a depot, or one version of it",
      input: DepotRemove,
      output: Type.Integer({ description: "how many versions are gone" }),
      revised: true,
      handler: async ({ principal, input, expected }) => ({
        message: await depots.remove(principal, input.name, {
          version: input.version || undefined,
          force: input.force,
          expected,
        }),
        revision: undefined,
      }),
    }),
  ];
}

function fileRoutes(depots: DepotService): readonly Endpoint[] {
  const change = {
    method: "PUT",
    permission: "depots:write",
    summary: "Makes a new version with one file modified, added or deleted",
    body: "multipart",
    uploads: "optional",
    content: ({ type }: Static<typeof DepotFileChange>, files: readonly UploadedFile[]) =>
      type === "D" || contentOf(files).length > 0 ? [] : ["content"],
    input: DepotFileChange,
    output: DepotRecord,
    revised: true,
    handler: async ({ principal, input, files, expected }: Call<Static<typeof DepotFileChange>>) =>
      recordOf(await depots.changeFile(principal, await withContent(input, files), expected)),
  } as const;
  return [
    endpoint({
      method: "GET",
      path: "/monitoring/depot/file/:name",
      permission: "depots:read",
      summary: "Content of a text file of a depot",
      input: DepotFileSelect,
      output: Type.String(),
      handler: async ({ principal, input }) => ({
        message: await depots.readFile(principal, input.name, input.version, input.filepath),
      }),
    }),
    endpoint({ ...change, path: "/monitoring/depot/file/:name" }),
    endpoint({ ...change, path: "/monitoring/depot/file" }),
    endpoint({
      method: "GET",
      path: "/monitoring/depot/diff/:name",
      permission: "depots:read",
      summary: "Differences of two versions, file by file",
      input: DepotDiffSelect,
      output: Type.Array(DepotDifference),
      handler: async ({ principal, input }) => ({
        message: [...(await depots.diff(principal, input.name, input.version, input.compareVersion))],
      }),
    }),
  ];
}

function recordOf(record: DepotRecord): Answer<DepotRecord> {
  return { message: record, revision: record.revision };
}

/** Takes all uploaded parts, under any field name. Leaves out the empty file field that a browser sends. */
function contentOf(files: readonly UploadedFile[], encoding?: string): readonly DepotUpload[] {
  const names = nameEncoding(encoding);
  return files.filter((file) => file.filename !== "" || file.size > 0).map((file) => ({ ...file, names }));
}

/** The new content may come as a form field or as an uploaded part. */
async function withContent(
  input: Static<typeof DepotFileChange>,
  files: readonly UploadedFile[],
): Promise<DepotFileContent> {
  const [file] = contentOf(files);
  if (input.content !== undefined || file === undefined) return input;
  if (file.size > DEPOT_TEXT_MAX_BYTES)
    throw new AppError("too_large", `The content has more than ${DEPOT_TEXT_MAX_BYTES} bytes.`);
  return { ...input, content: await readFile(file.path) };
}
