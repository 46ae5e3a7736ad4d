import { AppError } from "../../../common/errors.ts";
import type { ObjectStore } from "../objects.ts";
import type { EmbeddedRuntime } from "./engine.ts";
import type { Environment } from "./environment.ts";

export class EmbeddedObjectStore implements ObjectStore {
  constructor(_env: Environment, _runtime: EmbeddedRuntime) {}
  async close(): Promise<void> {}
  change(): Promise<never> { return no(); }
  get(): Promise<never> { return no(); }
  find(): Promise<never> { return no(); }
  scan(): Promise<never> { return no(); }
  history(): Promise<never> { return no(); }
  edges(): Promise<never> { return no(); }
  append(): Promise<never> { return no(); }
  timeline(): Promise<never> { return no(); }
  getRecords(): Promise<never> { return no(); }
  removeRecords(): Promise<never> { return no(); }
}
function no(): Promise<never> { return Promise.reject(new AppError("unsupported", "Objects are not stored here yet.")); }
