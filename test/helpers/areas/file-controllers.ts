import { afterAll, beforeAll } from "vitest";
import { openTestEngine, type TestEngine } from "../engines/engine.ts";
import { fileController, type FileController, type FileControllerOptions } from "./files.ts";

/** Two controllers over one store. */
export interface FileControllers {
  readonly engine: TestEngine;
  readonly one: FileController;
  readonly other: FileController;
}

/** Opens the store before the tests of the calling file and passes it to `opened`. Removes it after them. */
export function useFileControllers(
  opened: (controllers: FileControllers) => void,
  options: FileControllerOptions = {},
): void {
  let engine: TestEngine;
  let controllers: readonly FileController[] = [];
  beforeAll(async () => {
    engine = await openTestEngine();
    const [one, other] = [fileController(engine, options), fileController(engine, { ...options, own: "other" })];
    controllers = [other, one];
    opened({ engine, one, other });
  });
  afterAll(async () => {
    for (const controller of controllers) await controller[Symbol.asyncDispose]();
    await engine.close();
  });
}
