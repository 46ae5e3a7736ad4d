import { isStream, piecesOf, streamOf, type Content, type Upload } from "./content.ts";
import { OdpError } from "./error.ts";
import type { Plan } from "./plan.ts";
import { sendsStreams, type FetchInit } from "./platform.ts";
import { jsonOf, refusal, textsOf } from "./request.ts";

/** The body of a call, made anew for each attempt. */
export interface Body {
  readonly make: (signal: AbortSignal) => Pick<FetchInit, "body" | "duplex">;
  /** `undefined` if `fetch` finds the type. */
  readonly type: string | undefined;
  /** False if it can be read only once. */
  readonly isReplayable: boolean;
}

export const NO_BODY: Body = { make: () => ({}), type: undefined, isReplayable: true };

export interface BodyOptions {
  readonly contentType: string | undefined;
  /** A text that separates the parts of a form. It must not occur in them. */
  readonly boundary: () => string;
}

/** The body that a request has for an operation. */
export function bodyOf(plan: Pick<Plan, "isMultipart">, body: unknown, options: BodyOptions): Body {
  if (body === undefined) return NO_BODY;
  if (isContent(body)) return contentBody(body, options.contentType);
  if (typeof body !== "object" || body === null) throw refusal("The body is neither an object nor content.");
  if (plan.isMultipart) return formBody(partsOf(body), options.boundary());
  const text = jsonOf(body);
  return { make: () => ({ body: text }), type: "application/json", isReplayable: true };
}

function isContent(body: unknown): body is Content {
  return typeof body === "string" || body instanceof Uint8Array || body instanceof Blob || isStream(body);
}

function contentBody(content: Content, contentType: string | undefined): Body {
  if (isStream(content)) return streamBody(() => piecesOf(content), contentType ?? "text/plain");
  const plain = typeof content === "string" ? "text/plain; charset=utf-8" : "text/plain";
  const own = content instanceof Blob && content.type !== "" ? content.type : plain;
  return { make: () => ({ body: content }), type: contentType ?? own, isReplayable: true };
}

function streamBody(pieces: () => AsyncGenerator<Uint8Array>, type: string): Body {
  if (!sendsStreams())
    throw new OdpError("unsupported", "This browser does not upload streams. Give a Blob or a File.", {
      isUndone: true,
    });
  return { make: (signal) => ({ body: streamOf(pieces(), signal), duplex: "half" }), type, isReplayable: false };
}

type Part = readonly [name: string, value: string | Upload];

function partsOf(body: object): readonly Part[] {
  return Object.entries(body).flatMap(([name, value]: [string, unknown]): readonly Part[] => {
    const list = [value].flat();
    if (list.length > 0 && list.every(isUpload)) return list.map((file): Part => [name, file]);
    return textsOf(name, value).map((text): Part => [name, text]);
  });
}

function isUpload(value: unknown): value is Upload {
  if (typeof value !== "object" || value === null) return false;
  return value instanceof Blob || ("name" in value && "content" in value && isContent(value.content));
}

/**
 * The form as RFC 7578 has it. The `FormData` of the platform would change the line ends of texts, and cannot hold a
 * stream.
 */
function formBody(parts: readonly Part[], boundary: string): Body {
  const contents = formContents(parts, boundary);
  const type = `multipart/form-data; boundary=${boundary}`;
  if (contents.some(isStream)) return streamBody(() => allPieces(contents), type);
  const form = new Blob(contents as ConstructorParameters<typeof Blob>[0]);
  return { make: () => ({ body: form }), type, isReplayable: true };
}

/** The form as a sequence of contents. */
function formContents(parts: readonly Part[], boundary: string): readonly Content[] {
  const contents = parts.flatMap(([name, value]): readonly Content[] => {
    const disposition = `--${boundary}\r\nContent-Disposition: form-data; name="${escaped(name)}"`;
    if (typeof value === "string") return [`${disposition}\r\n\r\n${value}\r\n`];
    const { name: filename, type = "" } = value;
    const head = `${disposition}; filename="${escaped(filename)}"\r\nContent-Type: ${type === "" ? "application/octet-stream" : type}`;
    return [`${head}\r\n\r\n`, value instanceof Blob ? value : value.content, "\r\n"];
  });
  return [...contents, `--${boundary}--\r\n`];
}

async function* allPieces(contents: readonly Content[]): AsyncGenerator<Uint8Array> {
  for (const content of contents) yield* piecesOf(content);
}

/** A name in a head, as browsers write it. */
function escaped(text: string): string {
  return text.replaceAll("\n", "%0A").replaceAll("\r", "%0D").replaceAll('"', "%22");
}
