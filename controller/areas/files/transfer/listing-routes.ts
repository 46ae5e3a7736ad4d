import type { Static } from "typebox";
import type { FileRead, FileRecord } from "../../../../common/api/files.ts";
import { AppError } from "../../../../common/errors.ts";
import type { Call, RowsAnswer } from "../../../http/interface/endpoint.ts";
import type { Principal } from "../../permissions/index.ts";
import { FILE_CLASS } from "../classes.ts";
import type { FileEntry } from "../entries.ts";
import { nameOf, parentOf, type FileName } from "../names.ts";
import type { FileSearchService } from "../search/service.ts";
import { revisionOfFile } from "./expected.ts";
import type { Services } from "./upload-routes.ts";

type ReadInput = Static<typeof FileRead>;

/** `AppError("invalid")` for `limit` or `after` where they would have no effect. */
export function requirePage({ type, limit, after }: Pick<ReadInput, "type" | "limit" | "after">): void {
  if (type !== "dir" && (limit !== undefined || after !== undefined))
    throw new AppError("invalid", "limit and after are for the list of a folder: send type=dir.");
  if (limit === undefined && after !== undefined)
    throw new AppError("invalid", "after is for pages: send limit, the number of entries in a page.");
}

interface Listed extends Pick<Call<ReadInput>, "principal" | "input" | "signal"> {
  readonly name: FileName;
}

/** The whole folder, or the page that the input names. */
export async function listed(
  { files, search }: Services,
  { principal, name, input: { limit, after }, signal }: Listed,
): Promise<RowsAnswer> {
  if (limit === undefined) return { rows: records(search, principal, files.list(principal, name, signal)) };
  const { entries, next } = await files.page(principal, name, { limit, after, signal });
  return { rows: records(search, principal, entries), meta: next === undefined ? {} : { next } };
}

async function* records(
  search: FileSearchService,
  principal: Principal,
  parts: AsyncIterable<readonly FileEntry[]>,
): AsyncGenerator<readonly Static<typeof FileRecord>[]> {
  for await (const entries of parts) {
    const statuses = await search.statuses(principal, entries);
    yield entries.map((entry, at) => record(principal.ospace, entry, statuses[at] ?? ""));
  }
}

function record(ospace: string, entry: FileEntry, status: string): Static<typeof FileRecord> {
  const { id, fullname, content, ftype, attr, size, owner, tags, values } = entry;
  return {
    id,
    class: `${ospace}${FILE_CLASS.path}`,
    name: nameOf(fullname),
    parent: parentOf(fullname),
    fullname,
    ftype,
    isdir: content === undefined,
    attr,
    size,
    ctime: entry.createdMs,
    mtime: entry.modifiedMs,
    vtime: entry.versionMs,
    owner,
    username: owner,
    status,
    tags: [...tags],
    ispublic: false,
    revision: revisionOfFile(entry),
    // Not of `content`, which is there although rules hide the column.
    ...(typeof values["digest"] === "string" && { digest: values["digest"] }),
  };
}
