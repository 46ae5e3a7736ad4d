import { Type } from "typebox";
import { ChangedFiles, VersionInput, VersionList, VersionRecord } from "../../../../common/api/file-versions.ts";
import { FILE_VERSIONS_PAGE_DEFAULT } from "../../../../common/limits.ts";
import { endpoint, type Endpoint } from "../../../http/interface/endpoint.ts";
import { spaceOf } from "../transfer/addressed.ts";
import type { FileVersions } from "./service.ts";

export function versionRoutes(versions: FileVersions): readonly Endpoint[] {
  return [...transferRoutes(versions), listRoute(versions), removeRoute(versions)];
}

function transferRoutes(versions: FileVersions): readonly Endpoint[] {
  return (["push", "pull"] as const).map((verb) =>
    endpoint({
      method: "POST",
      path: `/fs/${verb}/*`,
      permission: "files:write",
      summary: SUMMARIES[verb],
      input: VersionInput,
      output: ChangedFiles,
      body: "form",
      handler: async ({ principal, input: { "*": path, issys, version } }) => ({
        message: await versions[verb](principal, { path, space: spaceOf(issys) }, version),
      }),
    }),
  );
}

function listRoute(versions: FileVersions): Endpoint {
  return endpoint({
    method: "GET",
    path: "/files/versions/*",
    permission: "files:read",
    summary: "Versions of a file or folder, page by page in the order of names; meta.next leads on",
    input: VersionList,
    output: Type.Array(VersionRecord),
    handler: async ({ principal, input: { "*": path, issys, after, limit = FILE_VERSIONS_PAGE_DEFAULT } }) => {
      const page = await versions.list(principal, { path, space: spaceOf(issys) }, { after, limit });
      const message = page.versions.map(({ timeMs, ...version }) => ({ ...version, time: timeMs }));
      return { message, meta: page.next === undefined ? {} : { next: page.next } };
    },
  });
}

function removeRoute(versions: FileVersions): Endpoint {
  return endpoint({
    method: "DELETE",
    path: "/files/versions/*",
    permission: "files:write",
    summary: "Delete a version of a file or folder; the files themselves stay",
    input: VersionInput,
    output: Type.String(),
    handler: async ({ principal, input: { "*": path, issys, version } }) => {
      await versions.remove(principal, { path, space: spaceOf(issys) }, version);
      return { message: "" };
    },
  });
}

const SUMMARIES = {
  push: "Keep a file, or a folder with all below it, as a version",
  pull: "Make a file or folder equal to a version of it",
} as const;
