import { Type } from "typebox";
import type { Static } from "typebox";
import { FileAnswer, FileMove, FilePath, FileRead, RootRead, ServedPath } from "../../../common/api/files.ts";
import { AppError } from "../../../common/errors.ts";
import { endpoint, type Answer, type Call, type Endpoint } from "../../http/interface/endpoint.ts";
import { CONTENT_STATUSES, contentAnswer, FILE_BYTES } from "./content-routes.ts";
import { historyRoutes } from "./history/routes.ts";
import { searchRoutes } from "./search/search-routes.ts";
import type { FileSearchService } from "./search/service.ts";
import type { FileService } from "./service.ts";
import { fileName, spaceOf } from "./transfer/addressed.ts";
import { localRoutes } from "./local/routes.ts";
import { revisionOfFile } from "./transfer/expected.ts";
import { listed, requirePage } from "./transfer/listing-routes.ts";
import { uploadRoutes, type Services } from "./transfer/upload-routes.ts";
import { versionRoutes } from "./versions/routes.ts";

export function fileRoutes(files: FileService, search: FileSearchService): readonly Endpoint[] {
  const services = { files, search };
  return [
    readRoute(services),
    rootRoute(services),
    ...uploadRoutes(services),
    removeRoute(files),
    ...transferRoutes(files),
    ...searchRoutes(search, (call) => read(services, call)),
    servedRoute(files),
    ...versionRoutes(files.versions),
    ...historyRoutes(files.history),
    ...localRoutes(files),
  ];
}

function readRoute(services: Services): Endpoint {
  return endpoint({
    method: "GET",
    path: "/fs/*",
    permission: "files:read",
    summary: "Read a file or what is kept of it, list a folder, or ask whether it is there",
    input: FileRead,
    output: FileAnswer,
    revised: true,
    bare: FILE_BYTES,
    statuses: CONTENT_STATUSES,
    handler: (call) => read(services, call),
  });
}

function rootRoute(services: Services): Endpoint {
  return endpoint({
    method: "GET",
    path: "/fs",
    permission: "files:read",
    summary: "List the root folder",
    input: RootRead,
    output: FileAnswer,
    revised: true,
    bare: FILE_BYTES,
    statuses: CONTENT_STATUSES,
    handler: ({ principal, input, signal }) => read(services, { principal, signal, input: { ...input, "*": "/" } }),
  });
}

function removeRoute(files: FileService): Endpoint {
  return endpoint({
    method: "DELETE",
    path: "/fs/*",
    permission: "files:write",
    summary: "Remove a file, or a folder with all below it",
    input: FilePath,
    output: Type.String(),
    revised: true,
    handler: async ({ principal, input, expected }) => {
      await files.remove(principal, fileName(input), expected);
      return { message: "", revision: undefined };
    },
  });
}

function transferRoutes(files: FileService): readonly Endpoint[] {
  const moves = (["rename", "move"] as const).map((verb) =>
    endpoint({
      ...transfer(verb),
      revised: true,
      handler: async ({ principal, input: { srcpath, dstpath, issys }, expected }) => {
        const name = { path: srcpath, space: spaceOf(issys) };
        return { message: "", revision: await files[verb](principal, name, dstpath, expected) };
      },
    }),
  );
  const copy = endpoint({
    ...transfer("copy"),
    handler: async ({ principal, input: { srcpath, dstpath, issys } }) => {
      await files.copy(principal, { path: srcpath, space: spaceOf(issys) }, dstpath);
      return { message: "" };
    },
  });
  return [...moves, copy];
}

function transfer<V extends keyof typeof SUMMARIES>(verb: V) {
  return {
    method: "POST",
    path: `/fs/${verb}`,
    permission: "files:write",
    summary: SUMMARIES[verb],
    input: FileMove,
    output: Type.String(),
    body: "form",
  } as const;
}

function servedRoute(files: FileService): Endpoint {
  return endpoint({
    method: "GET",
    path: "/static/*",
    permission: "files:read",
    summary: "The bytes of a file of either space for browsers, by the type of its name",
    input: ServedPath,
    output: Type.String(),
    bare: { ...FILE_BYTES, only: true },
    statuses: CONTENT_STATUSES,
    handler: async ({ principal, input }) => {
      const file = await files.openServed(principal, fileName(input));
      return contentAnswer(files, { principal, file });
    },
  });
}

const SUMMARIES = {
  rename: "Give a file or folder a whole new path",
  copy: "Copy a file, or a folder with all below it, into a folder",
  move: "Move a file, or a folder with all below it, into a folder",
} as const;

async function read(
  { files, search }: Services,
  { principal, input, signal }: Pick<Call<Static<typeof FileRead>>, "principal" | "input" | "signal">,
): Promise<Answer<Static<typeof FileAnswer>>> {
  const name = fileName(input);
  requirePage(input);
  switch (input.type ?? "open") {
    case "check":
      return { message: await files.exists(principal, name) };
    case "file":
      return { message: (await files.read(principal, name.path, name.space)).text };
    case "attr":
    case "tag": {
      const entry = await files.about(principal, name);
      const message = input.type === "attr" ? entry.attr : [...entry.tags];
      return { message, revision: revisionOfFile(entry) };
    }
    case "dir":
      return listed({ files, search }, { principal, name, input, signal });
    case "open":
    case "download": {
      const file = await files.open(principal, name.path, name.space);
      return contentAnswer(files, { principal, file, isDownload: input.type === "download" });
    }
    default:
      throw new AppError("invalid", "type is one of dir, file, attr, tag, open, download and check.");
  }
}
