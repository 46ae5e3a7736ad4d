import { bytesOf, textOf, warningsOf } from "./answers.ts";
import { readable, streamOf } from "./content.ts";
import type { FetchResponse } from "./platform.ts";
import type { Download } from "./types.ts";

/** An answer whose body is read as it arrives. */
export function downloadOf(response: FetchResponse, content: AsyncGenerator<Uint8Array>, maxBytes: number): Download {
  const { status, headers } = response;
  const body = streamOf(content);
  const length = headers.get("content-length");
  return {
    body,
    contentType: headers.get("content-type") ?? "",
    filename: filenameIn(headers.get("content-disposition") ?? ""),
    // The length of a compressed answer is not that of the content.
    length: length === null || headers.get("content-encoding") !== null ? undefined : Number(length),
    warnings: warningsOf(response),
    etag: headers.get("etag") ?? undefined,
    location: headers.get("location") ?? undefined,
    status,
    bytes: () => bytesOf(readable(body), maxBytes),
    text: () => textOf(readable(body), maxBytes),
    [Symbol.asyncIterator]: () => readable(body),
  };
}

/** The name in the header `Content-Disposition`, the encoded one first (RFC 6266). */
function filenameIn(disposition: string): string | undefined {
  const encoded = /filename\*=UTF-8''([^;]+)/i.exec(disposition)?.[1];
  if (encoded !== undefined) {
    try {
      return decodeURIComponent(encoded);
    } catch {
      // The plain name follows.
    }
  }
  return /filename="((?:[^"\\]|\\.)*)"/i.exec(disposition)?.[1]?.replaceAll(/\\(.)/g, "$1");
}
