import { Type } from "typebox";
import { LocalPath, LocalRemoval, SnapshotInput } from "../../../../common/api/file-versions.ts";
import { endpoint, type Endpoint } from "../../../http/interface/endpoint.ts";
import { CONTENT_STATUSES, contentAnswer, FILE_BYTES } from "../content-routes.ts";
import type { FileService } from "../service.ts";
import { spaceOf } from "../transfer/addressed.ts";

export function localRoutes(files: FileService): readonly Endpoint[] {
  const { versions } = files;
  return [
    endpoint({
      method: "POST",
      path: "/fs/tolocal/*",
      permission: "files:write",
      summary: "Keep a snapshot of a file or folder, which /local serves until the next one",
      input: SnapshotInput,
      output: Type.String(),
      body: "form",
      handler: async ({ principal, input: { "*": path, issys } }) => {
        await versions.snapshot(principal, { path, space: spaceOf(issys) });
        return { message: "" };
      },
    }),
    endpoint({
      method: "GET",
      path: "/local/:keyspace/*",
      permission: "files:read",
      summary: "The bytes of a file of a snapshot for browsers, by the type of its name",
      input: LocalPath,
      output: Type.String(),
      bare: { ...FILE_BYTES, only: true },
      statuses: CONTENT_STATUSES,
      handler: async ({ principal, input: { keyspace, "*": path } }) => {
        const file = await versions.local.open(principal, keyspace, path);
        return contentAnswer(files, { principal, file });
      },
    }),
    endpoint({
      method: "DELETE",
      path: "/local/:keyspace/*",
      permission: "files:write",
      summary: "Remove the snapshot of exactly this path; the files themselves stay",
      input: LocalRemoval,
      output: Type.String(),
      handler: async ({ principal, input: { keyspace, "*": path, issys } }) => {
        await versions.removeSnapshot(principal, keyspace, { path, space: spaceOf(issys) });
        return { message: "" };
      },
    }),
  ];
}
