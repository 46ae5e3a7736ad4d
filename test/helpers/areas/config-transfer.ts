import { afterAll, beforeAll, beforeEach } from "vitest";
import { uploadFolder } from "../runs/archives.ts";
import { configWorld } from "./config.ts";
import { openTestEngine, type TestEngine } from "../engines/engine.ts";
import { testPrincipal } from "../time/runtime.ts";
import type { Principal } from "../../../controller/areas/permissions/index.ts";
import { ConfigImport } from "../../../controller/areas/config/import.ts";
import { ConfigService } from "../../../controller/areas/config/service.ts";

/** Exports and imports of a configuration, each test below a folder of its own. */

export const admin = testPrincipal();

/** Stores that all tests of the calling file share. */
export let engine: TestEngine;
/** Uploaded files of the calling file. */
export let uploads: Awaited<ReturnType<typeof uploadFolder>>;
/** A controller over the shared stores. */
export let world: ReturnType<typeof configWorld>;
/** The configuration of that controller. */
export let config: ConfigService;
/** The folder of the running test. */
export let base = "";
let count = 0;

/** Opens one engine and a controller for all tests of the calling file. */
export function useConfigTransfer(): void {
  beforeAll(async () => {
    engine = await openTestEngine();
    uploads = await uploadFolder();
    world = configWorld(engine);
    config = new ConfigService(world);
  });
  beforeEach(() => {
    base = `/matrix/i${(count += 1)}`;
  });
  afterAll(async () => {
    await uploads.remove();
    await world[Symbol.asyncDispose]();
    await engine[Symbol.asyncDispose]();
  });
}

/** The signal of an export that is never stopped. */
export const signal = new AbortController().signal;

interface ImportOptions {
  readonly key?: string;
  readonly plan?: boolean;
  readonly by?: Principal;
  /** The controller that imports. Absent: the one that all tests share. */
  readonly at?: ReturnType<typeof configWorld>;
}

/** Imports a file, given as text or as what its JSON holds. */
export async function imported(file: unknown, { key, plan = false, by = admin, at = world }: ImportOptions = {}) {
  const text = typeof file === "string" ? file : JSON.stringify(file);
  const { path } = await uploads.upload("config.json", Buffer.from(text));
  return new ConfigImport(at).run(by, { path, size: Buffer.byteLength(text), key, plan });
}

/** Returns `n` entries below the folder of the test. */
export const many = (n: number, value = "v") =>
  Array.from({ length: n }, (_, at) => ({ key: `${base}/${String(at).padStart(6, "0")}`, value: `${value}${at}` }));

/** Returns all values below a key, in the order of their keys. */
export async function valuesUnder(key: string): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const { value = "" } of await config.exported(admin, key, signal)) found.push(value);
  return found;
}
