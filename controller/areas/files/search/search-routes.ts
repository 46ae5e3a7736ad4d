import type { Static } from "typebox";
import { Type } from "typebox";
import {
  FileAnswer,
  FileIndexing,
  FilePath,
  type FileRead,
  FileSearch,
  FoundPlace,
  RootIndexing,
  RootSearch,
} from "../../../../common/api/files.ts";
import { AppError } from "../../../../common/errors.ts";
import { endpoint, type Answer, type Call, type Endpoint } from "../../../http/interface/endpoint.ts";
import type { Principal } from "../../permissions/index.ts";
import { CONTENT_STATUSES, FILE_BYTES } from "../content-routes.ts";
import type { FileName } from "../names.ts";
import type { FileSearchService } from "./service.ts";

type Read = (
  call: Pick<Call<Static<typeof FileRead>>, "principal" | "input" | "signal">,
) => Promise<Answer<Static<typeof FileAnswer>>>;

/** `read` answers `GET /fs/*`. It is for files and folders whose path begins with `search`. */
export function searchRoutes(search: FileSearchService, read: Read): readonly Endpoint[] {
  return [...indexRoutes(search), ...findRoutes(search, read)];
}

function indexRoutes(search: FileSearchService): readonly Endpoint[] {
  const answer = async (principal: Principal, name: FileName): Promise<Answer<Static<typeof FileIndexing>>> => {
    const { indexed, unindexed, named } = await search.index(principal, name);
    return { message: { indexed, unindexed }, warnings: named };
  };
  return [
    endpoint({
      method: "POST",
      path: "/fs/index/*",
      permission: "files:write",
      summary: "Include a file, or all files below a folder, in the search, and index their contents",
      input: FilePath,
      output: FileIndexing,
      handler: ({ principal, input: { "*": path, issys } }) => answer(principal, nameOf(path, issys)),
    }),
    endpoint({
      method: "POST",
      path: "/fs/index",
      permission: "files:write",
      summary: "Include all files in the search, and index their contents",
      input: RootIndexing,
      output: FileIndexing,
      handler: ({ principal, input: { issys } }) => answer(principal, nameOf("/", issys)),
    }),
  ];
}

function findRoutes(search: FileSearchService, read: Read): readonly Endpoint[] {
  const output = Type.Union([FileAnswer, Type.Array(FoundPlace)]);
  const form = { permission: "files:read", output, bare: FILE_BYTES, statuses: CONTENT_STATUSES } as const;
  const find = async (call: Call<Static<typeof RootSearch>>, name: FileName, query: string) => {
    const { principal, signal, input } = call;
    refusePage(input);
    const { rows, warnings } = await search.search(principal, name, { query, signal });
    const ignored = input.type === undefined ? [] : ["type has no effect beside query."];
    return { message: [...rows], warnings: [...ignored, ...warnings] };
  };
  return [
    endpoint({
      ...form,
      method: "GET",
      path: "/fs/search/*",
      summary:
        "Search words in the contents of files below a path. Without query: as GET of /fs/*, below the folder /search",
      input: FileSearch,
      handler: (call) => {
        const { "*": path, issys, query } = call.input;
        if (query !== undefined) return find(call, nameOf(path, issys), query);
        const { principal, signal } = call;
        return read({ principal, signal, input: { ...call.input, "*": `search/${path}` } });
      },
    }),
    endpoint({
      ...form,
      method: "GET",
      path: "/fs/search",
      summary: "Search words in the contents of all files. Without query: as GET of /fs/* of the folder /search",
      input: RootSearch,
      handler: (call) => {
        const { issys, query } = call.input;
        if (query !== undefined) return find(call, nameOf("/", issys), query);
        const { principal, signal } = call;
        return read({ principal, signal, input: { ...call.input, "*": "search" } });
      },
    }),
  ];
}

/** `AppError("invalid")`: a search has no pages. */
function refusePage({ limit, after }: Static<typeof RootSearch>): void {
  if (limit === undefined && after === undefined) return;
  throw new AppError(
    "invalid",
    "limit and after are for the list of a folder, not for a search: leave out query or them.",
  );
}

function nameOf(path: string, issys: boolean | undefined): FileName {
  return { path, space: issys ? "system" : "user" };
}
