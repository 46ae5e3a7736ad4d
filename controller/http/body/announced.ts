import type { IncomingHttpHeaders } from "node:http";
import { HTTP_FORM_BESIDE_FILES_BYTES } from "../../../common/limits.ts";

/**
 * Bytes that all files of a form have together at least, by its `Content-Length`. 0 if the client sends none. A form may
 * have `HTTP_FORM_BESIDE_FILES_BYTES` of fields and heads of parts besides.
 */
export function announcedFileBytes({ "content-length": length }: IncomingHttpHeaders): number {
  return Math.max(0, Number(length ?? 0) - HTTP_FORM_BESIDE_FILES_BYTES);
}
