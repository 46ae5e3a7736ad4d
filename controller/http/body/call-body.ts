import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { FastifyRequest } from "fastify";
import type { Runtime } from "../../runtime.ts";
import { isAppError } from "../../../common/errors.ts";
import { isLargeJson, type Bound } from "../../../common/json-decoder.ts";
import { looksLikeJson, parseJson } from "../../../common/json.ts";
import { decodeJson, fitsOneTurn } from "../../turns/decoding.ts";
import type { ThreadSlices } from "../../turns/slices.ts";
import {
  fieldsInSlices,
  interpret,
  isForm,
  NO_BODY,
  readBody,
  type Body,
  type ReadBody,
  type Stranger,
  type Texts,
} from "./body.ts";
import type { CallMemory } from "./memory.ts";
import { holdDecoded, holdFields } from "./weight.ts";
import { requireUncompressed } from "../answer/compress.ts";
import type { Endpoint, TakenFile } from "../interface/endpoint.ts";
import type { Fields } from "./fields.ts";
import { FormDecoder, parseUrlEncoded } from "./form-decoder.ts";
import { readMultipart, type FileOfBody, type MultipartOptions } from "./multipart.ts";

const FOLDER_NAME_BYTES = 12;

export interface CallBodyDependencies {
  readonly runtime: Runtime;
  readonly endpoint: Endpoint;
  readonly request: FastifyRequest;
  /** Holds memory for the body and its decoded values. */
  readonly memory: CallMemory;
  /** Folder for uploads. They are removed after their call. */
  readonly uploads: string;
}

export interface ReadOptions {
  /** Time slices in which large texts are decoded. */
  readonly slices: ThreadSlices;
  /** Maximum bytes of the body without uploaded files. */
  readonly bound: Bound;
  /** Present while the caller is unknown. */
  readonly stranger: Stranger | undefined;
  /** Called with the fields before the first uploaded file. Refuses the upload by throwing. */
  readonly beforeFiles: (fields: Fields) => Promise<void>;
  /** See `MultipartOptions`. */
  readonly takeIn: MultipartOptions["takeIn"];
  /** See `readBody`. */
  readonly keepsMalformed?: boolean;
}

/** True if the request has a body, which may be empty. */
export function hasBody(request: FastifyRequest): boolean {
  return (request.body !== undefined && request.body !== null) || request.isMultipart();
}

/** The body of one call, and the folder of its uploads. */
export class CallBody {
  readonly #with: CallBodyDependencies;
  #folder: string | undefined;
  readonly #taken: TakenFile[] = [];

  constructor(dependencies: CallBodyDependencies) {
    this.#with = dependencies;
  }

  /** Call it once: the request is a stream. */
  async read({ bound, stranger, beforeFiles, takeIn, keepsMalformed = false, slices }: ReadOptions): Promise<Body> {
    const { request, endpoint, runtime, memory, uploads } = this.#with;
    const { contentType } = request.exchange;
    if (!hasBody(request)) return NO_BODY;
    requireUncompressed(request.headers["content-encoding"]);
    if (request.isMultipart()) {
      const taking = takeIn && this.#taking(takeIn);
      const name = (): string => Buffer.from(runtime.random.bytes(FOLDER_NAME_BYTES)).toString("hex");
      const folder = (): string => (this.#folder ??= join(uploads, name()));
      const form = { folder, beforeFiles, takeIn: taking, bound, stranger, memory, slices };
      const body = await readMultipart(request, form);
      await holdFields(memory, body.fields);
      return body;
    }
    const form = isForm(endpoint, contentType);
    const options = { contentType, isForm: form, bound, stranger, memory, keepsMalformed, slices };
    const read = await readBody(request.raw, options);
    const body = interpret(endpoint, read.text, contentType, await this.#decoded(read, slices));
    if (!body.isJson) await holdFields(memory, body.fields);
    return read.malformed ? { ...body, malformed: read.malformed } : body;
  }

  /** Notes what is taken in, so that it is released after the call. */
  #taking(takeIn: NonNullable<MultipartOptions["takeIn"]>): NonNullable<MultipartOptions["takeIn"]> {
    return async (file: FileOfBody, fields: Fields): Promise<TakenFile> => {
      const taken = await takeIn(file, fields);
      this.#taken.push(taken);
      return taken;
    };
  }

  /** Holds memory for the values of a text. A large text is decoded here, in slices. */
  async #decoded({ text, form: escaped }: ReadBody, slices: ThreadSlices): Promise<Texts | undefined> {
    const { endpoint, request, memory } = this.#with;
    const isJson = looksLikeJson(text) && endpoint.body !== "raw";
    if (!isJson || fitsOneTurn(text)) await holdDecoded(memory, text);
    if (endpoint.body === "raw") return undefined;
    const encoded = [escaped?.bytes ?? text, escaped?.encoding] as const;
    if (fitsOneTurn(text)) return { form: () => parseUrlEncoded(...encoded), json: parseJson };
    const isEncoded = isForm(endpoint, request.exchange.contentType);
    const form = isEncoded ? await decodeForm(new FormDecoder(...encoded), slices) : new Map();
    if (!isJson) return { form: () => form, json: () => undefined };
    memory.hold(text.length);
    let full: unknown;
    const hold = (bytes: number): void => {
      try {
        memory.hold(bytes);
      } catch (error) {
        full = error;
        throw error;
      }
    };
    const json = await decodeJson(text, { slices, hold }).then(
      async (value) => ({
        value: () => value,
        members: isLargeJson(value) ? await fieldsInSlices(value, slices) : undefined,
      }),
      (error: unknown) => {
        // The text may still be a free text. Lack of memory, or a client that has left, ends the call.
        if (error === full || !isAppError(error, "syntax", "too_large")) throw error;
        const fault = (): never => {
          throw error;
        };
        return { value: fault, members: undefined };
      },
    );
    return { form: () => form, json: json.value, members: json.members };
  }

  /** Removes the uploaded files, and releases those that were taken in, in the background. */
  removeUploads(): void {
    for (const taken of this.#taken.splice(0)) {
      taken.release().catch((error: unknown) => {
        this.#with.runtime.log.warn({ err: error }, "an upload could not be released");
      });
    }
    if (this.#folder === undefined) return;
    rm(this.#folder, { recursive: true, force: true }).catch((error: unknown) => {
      this.#with.runtime.log.warn({ err: error }, "an upload could not be removed");
    });
  }
}

async function decodeForm(decoder: FormDecoder, slices: ThreadSlices): Promise<Fields> {
  while (!decoder.step()) if (slices.isOverNow()) await slices.pause();
  return decoder.fields;
}
