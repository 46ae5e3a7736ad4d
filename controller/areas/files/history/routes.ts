import { Type } from "typebox";
import {
  FormerFileRecord,
  HistoryInput,
  PurgedFiles,
  PurgeInput,
  RestoredFiles,
  RestoreInput,
  TrashInput,
} from "../../../../common/api/file-history.ts";
import { FILE_TRASH_PAGE_DEFAULT } from "../../../../common/limits.ts";
import { endpoint, type Endpoint } from "../../../http/interface/endpoint.ts";
import { spaceOf } from "../transfer/addressed.ts";
import type { FormerFile } from "./former.ts";
import type { FileHistory } from "./service.ts";

export function historyRoutes(history: FileHistory): readonly Endpoint[] {
  return [historyRoute(history), trashRoute(history), restoreRoute(history), purgeRoute(history)];
}

function historyRoute(history: FileHistory): Endpoint {
  return endpoint({
    method: "GET",
    path: "/files/history/*",
    permission: "files:read",
    summary: "Former contents of a file that was replaced or removed, newest first",
    input: HistoryInput,
    output: Type.Array(FormerFileRecord),
    handler: async ({ principal, input: { "*": path, issys } }) => {
      const former = await history.list(principal, { path, space: spaceOf(issys) });
      return { message: former.map(recordOf) };
    },
  });
}

function trashRoute(history: FileHistory): Endpoint {
  return endpoint({
    method: "GET",
    path: "/files/trash",
    permission: "files:read",
    summary: "Removed files and folders, newest first, page by page; meta.next leads on",
    input: TrashInput,
    output: Type.Array(FormerFileRecord),
    handler: async ({ principal, input: { path = "/", issys, after, limit = FILE_TRASH_PAGE_DEFAULT } }) => {
      const page = await history.trash(principal, { path, space: spaceOf(issys) }, { after, limit });
      return { message: page.former.map(recordOf), meta: page.next === undefined ? {} : { next: page.next } };
    },
  });
}

function restoreRoute(history: FileHistory): Endpoint {
  return endpoint({
    method: "POST",
    path: "/files/restore/*",
    permission: "files:write",
    summary: "Restore a former content of a file, or a removed folder with all that was removed with it",
    input: RestoreInput,
    output: RestoredFiles,
    body: "form",
    handler: async ({ principal, input: { "*": path, issys, key } }) => ({
      message: await history.restore(principal, { path, space: spaceOf(issys) }, key),
    }),
  });
}

function purgeRoute(history: FileHistory): Endpoint {
  return endpoint({
    method: "DELETE",
    path: "/files/history/*",
    permission: "files:write",
    summary: "Purge former contents of a file, or a removed folder with all that was removed with it",
    input: PurgeInput,
    output: PurgedFiles,
    handler: async ({ principal, input: { "*": path, issys, key }, signal }) => ({
      message: await history.purge(principal, { path, space: spaceOf(issys) }, { key, signal }),
    }),
  });
}

function recordOf({ key, entry, cause, atMs, user }: FormerFile) {
  const { fullname, content, size, owner, modifiedMs } = entry;
  const type = content ? ("file" as const) : ("dir" as const);
  return { key, path: fullname, type, cause, time: atMs, user, size, owner, modified: modifiedMs };
}
