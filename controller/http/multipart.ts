import { createWriteStream } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { Transform, type Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type {} from "@fastify/multipart";
import type { FastifyRequest } from "fastify";
import { AppError, errorText } from "../../common/errors.ts";
import {
  HTTP_BODY_MAX_BYTES,
  HTTP_FORM_MAX_FIELDS,
  HTTP_UPLOAD_MAX_BYTES,
  HTTP_UPLOAD_MAX_FILES,
} from "../../common/limits.ts";
import { NO_BODY, type Body } from "./body.ts";
import type { UploadedFile } from "./endpoint.ts";
import { addField, type Fields } from "./fields.ts";

export interface MultipartOptions {
  /** Made when the first file comes. */
  readonly folder: string;
  /** Bytes of all fields together, files not counted. */
  readonly fieldsMaxBytes?: number;
  /** Called once before the first file is taken in, with what came before it; may refuse by throwing. */
  readonly beforeFiles: (fields: Fields) => Promise<void>;
}

const BROKEN = "The multipart body is broken";

/** Reads a multipart body; files go to `folder` as they come, nothing of them stays in memory. */
export async function readMultipart(request: FastifyRequest, options: MultipartOptions): Promise<Body> {
  const reading = new MultipartReading(options);
  try {
    for await (const part of request.parts({ limits: LIMITS, preservePath: true })) {
      // The types promise a name that a client may leave out.
      const { fieldname } = part as { readonly fieldname?: string };
      if (part.type === "file") await reading.takeFile(fieldname, part.filename, part.file);
      else reading.takeField(fieldname, part.value);
    }
    return reading.body();
  } catch (error) {
    // What is still coming is read and thrown away, so that the client gets to see the answer.
    request.raw.unpipe();
    request.raw.resume();
    throw asAppError(error);
  }
}

const LIMITS = {
  fieldNameSize: 1_000,
  fieldSize: HTTP_BODY_MAX_BYTES,
  fields: HTTP_FORM_MAX_FIELDS,
  fileSize: HTTP_UPLOAD_MAX_BYTES,
  files: HTTP_UPLOAD_MAX_FILES,
  parts: HTTP_FORM_MAX_FIELDS + HTTP_UPLOAD_MAX_FILES,
};

class MultipartReading {
  readonly #options: MultipartOptions;
  readonly #fields = new Map<string, unknown[]>();
  readonly #files: UploadedFile[] = [];
  #fieldBytes = 0;
  #fileBytes = 0;
  /** Parts with a file so far, also those that were left out. */
  #taken = 0;
  #open = false;

  constructor(options: MultipartOptions) {
    this.#options = options;
  }

  takeField(name: string | undefined, value: unknown): void {
    if (name === undefined) throw nameless();
    this.#fieldBytes += name.length + (typeof value === "string" ? Buffer.byteLength(value) : 0);
    const max = this.#options.fieldsMaxBytes ?? HTTP_BODY_MAX_BYTES;
    if (this.#fieldBytes > max)
      throw new AppError("too_large", `The form's fields are larger than ${String(max)} bytes.`);
    addField(this.#fields, name, value);
  }

  async takeFile(
    field: string | undefined,
    filename: string | undefined,
    file: Readable & { truncated?: boolean },
  ): Promise<void> {
    // An error of the part that has no listener would end the process.
    file.on("error", ignore);
    if (field === undefined) throw nameless();
    if (!this.#open) await this.#openFolder();
    const path = join(this.#options.folder, String(this.#taken++));
    const before = this.#fileBytes;
    await pipeline(file, this.#counter(), createWriteStream(path, { flags: "wx", mode: 0o600 }));
    if (file.truncated === true) throw uploadTooLarge();
    const size = this.#fileBytes - before;
    // A browser sends an empty part for a file that was not chosen.
    if (size === 0 && (filename === undefined || filename === "")) return;
    this.#files.push({ field: field.replace(/\[\]$/, ""), filename: filename ?? "", path, size });
  }

  body(): Body {
    return { ...NO_BODY, fields: this.#fields, files: this.#files };
  }

  async #openFolder(): Promise<void> {
    await this.#options.beforeFiles(this.#fields);
    await mkdir(this.#options.folder, { recursive: true, mode: 0o700 });
    this.#open = true;
  }

  #counter(): Transform {
    return new Transform({
      transform: (chunk: Buffer, _encoding, done) => {
        this.#fileBytes += chunk.length;
        if (this.#fileBytes > HTTP_UPLOAD_MAX_BYTES) done(uploadTooLarge());
        else done(null, chunk);
      },
    });
  }
}

function ignore(): void {}

function nameless(): AppError {
  return new AppError("invalid", "A part of the form has no name.");
}

function uploadTooLarge(): AppError {
  return new AppError("too_large", `The upload is larger than ${String(HTTP_UPLOAD_MAX_BYTES)} bytes.`);
}

function asAppError(error: unknown): AppError {
  if (error instanceof AppError) return error;
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  if (code === "ENOSPC" || code === "EDQUOT")
    return new AppError("unavailable", "There is no room left for uploads.", { cause: error });
  if (code === "FST_REQ_FILE_TOO_LARGE") return uploadTooLarge();
  if (/^FST_(PARTS|FILES|FIELDS)_LIMIT$/.test(code)) {
    return new AppError(
      "too_large",
      `More than ${String(HTTP_UPLOAD_MAX_FILES)} files or ${String(HTTP_FORM_MAX_FIELDS)} fields.`,
      { cause: error },
    );
  }
  if (/^E[A-Z]+$/.test(code) && code !== "ECONNRESET")
    return new AppError("internal", errorText(error), { cause: error });
  return new AppError("invalid", `${BROKEN}: ${errorText(error)}.`, { cause: error });
}
