import { AppError } from "../../../common/errors.ts";
import type { BlobStore } from "../blobs.ts";
import type { EmbeddedRuntime } from "./engine.ts";
import type { Environment } from "./environment.ts";

export class EmbeddedBlobStore implements BlobStore {
  constructor(_env: Environment, _folder: string, _runtime: EmbeddedRuntime) {}
  async close(): Promise<void> {}
  put(): Promise<never> { return no(); }
  stat(): Promise<never> { return no(); }
  read(): AsyncIterable<Uint8Array> { throw new AppError("unsupported", "Bytes are not stored here yet."); }
  mark(): Promise<never> { return no(); }
  unmark(): Promise<never> { return no(); }
  sweep(): Promise<never> { return no(); }
  append(): Promise<never> { return no(); }
  readStream(): Promise<never> { return no(); }
  removeStream(): Promise<never> { return no(); }
}
function no(): Promise<never> { return Promise.reject(new AppError("unsupported", "Bytes are not stored here yet.")); }
