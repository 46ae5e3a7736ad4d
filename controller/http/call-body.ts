import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { FastifyRequest } from "fastify";
import type { Runtime } from "../runtime.ts";
import { interpret, NO_BODY, readText, type Body } from "./body.ts";
import type { CallMemory } from "./body-memory.ts";
import { holdDecoded, holdFields } from "./body-weight.ts";
import type { Endpoint } from "./endpoint.ts";
import type { Fields } from "./fields.ts";
import { readMultipart } from "./multipart.ts";

const FOLDER_NAME_BYTES = 12;

export interface CallBodyDependencies {
  readonly runtime: Runtime;
  readonly endpoint: Endpoint;
  readonly request: FastifyRequest;
  /** Holds what is read, and what becomes of it. */
  readonly memory: CallMemory;
  /** Uploads lie here for the time of their call. */
  readonly uploads: string;
}

export interface ReadOptions {
  /** Of all but uploaded files; absent: what any endpoint takes. */
  readonly maxBytes: number | undefined;
  /** Called with the fields that stand before the first uploaded file; what it throws refuses the upload. */
  readonly beforeFiles: (fields: Fields) => Promise<void>;
}

/** The body of one call, and the folder of what it uploads. */
export class CallBody {
  readonly #with: CallBodyDependencies;
  #folder: string | undefined;

  constructor(dependencies: CallBodyDependencies) {
    this.#with = dependencies;
  }

  /** Once: the request is a stream. */
  async read({ maxBytes, beforeFiles }: ReadOptions): Promise<Body> {
    const { request, endpoint, runtime, memory, uploads } = this.#with;
    const { contentType } = request.exchange;
    if (request.isMultipart()) {
      const name = Buffer.from(runtime.random.bytes(FOLDER_NAME_BYTES)).toString("hex");
      this.#folder = join(uploads, name);
      const form = { folder: this.#folder, beforeFiles, fieldsMaxBytes: maxBytes, memory };
      const body = await readMultipart(request, form);
      await holdFields(memory, body.fields);
      return body;
    }
    if (request.body === undefined || request.body === null) return NO_BODY;
    const text = await readText(request.raw, { contentType, maxBytes, memory });
    await holdDecoded(memory, text);
    const body = interpret(endpoint, text, contentType);
    if (!body.isJson) await holdFields(memory, body.fields);
    return body;
  }

  /** What was uploaded is gone; the call does not wait for it. */
  removeUploads(): void {
    if (this.#folder === undefined) return;
    rm(this.#folder, { recursive: true, force: true }).catch((error: unknown) => {
      this.#with.runtime.log.warn({ err: error }, "an upload could not be removed");
    });
  }
}
