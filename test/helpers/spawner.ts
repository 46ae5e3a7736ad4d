import { join } from "node:path";
import { Spawner } from "../../controller/processes/index.ts";
import { bundle } from "./bundle.ts";

/** A spawner as the controller has one. The caller closes it. */
export async function startSpawner(): Promise<Spawner> {
  const main = join(import.meta.dirname, "../../controller/spawner.ts");
  return new Spawner(await bundle(main, `spawner-${process.pid}/spawner.mjs`));
}
