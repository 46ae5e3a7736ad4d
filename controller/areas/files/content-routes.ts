import { etagOf } from "../../../common/revisions.ts";
import type { Answer, BareAnswers } from "../../http/interface/endpoint.ts";
import type { Principal } from "../permissions/index.ts";
import { ANY_TYPE } from "../../http/answer/forms.ts";
import { storedStatuses } from "../../http/answer/stored.ts";
import { contentTypeOf } from "./content-types.ts";
import { extensionOf, nameOf } from "./names.ts";
import type { OpenedFile } from "./contents.ts";
import type { FileService } from "./service.ts";

/**
 * Headers that put pages and pictures of users into an origin of their own. So these cannot use the viewer's session or
 * read its answers, and no page of another site may embed them.
 */
const HEADERS = {
  "content-security-policy":
    "sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads; frame-ancestors 'self'",
  "cross-origin-resource-policy": "same-origin",
};

export const CONTENT_STATUSES = storedStatuses({
  "cache-control": "What is open to every user is kept by the client and asked for again, all else is not",
  "content-security-policy": "What the content may do in a browser",
  "cross-origin-resource-policy": "Which pages may take it in",
});

/** The bytes of a file, by the type of its name. */
export const FILE_BYTES: BareAnswers = {
  content: { [ANY_TYPE]: { summary: "The bytes of the file" } },
  usual: true,
};

interface ContentRequest {
  readonly principal: Principal;
  readonly file: OpenedFile;
  readonly isDownload?: boolean;
}

/** Answers with the raw bytes of a file. */
export async function contentAnswer(
  files: FileService,
  { principal, file, isDownload = false }: ContentRequest,
): Promise<Answer<never>> {
  const { revision, size, versionMs, fullname } = file;
  return {
    stored: { size, etag: etagOf(revision), modifiedMs: versionMs, read: (part) => file.read(part) },
    headers: { ...HEADERS, ...(await keeping(files, principal, fullname)) },
    contentType: contentTypeOf(extensionOf(fullname)),
    ...(isDownload && { filename: nameOf(fullname) }),
  };
}

/**
 * Headers that let the browser cache a file, if every user may read it: then another user of the same browser may see
 * it.
 */
async function keeping(files: FileService, principal: Principal, fullname: string): Promise<Record<string, string>> {
  return (await files.isOpenToAll(principal, fullname)) ? { "cache-control": "private, no-cache" } : {};
}
