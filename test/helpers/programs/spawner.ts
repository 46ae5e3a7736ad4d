import { join } from "node:path";
import { Spawner } from "../../../controller/processes/index.ts";
import { bundle } from "./bundle.ts";

/** Starts a spawner like that of the controller. The caller closes it. */
export async function startSpawner(): Promise<Spawner> {
  const main = join(import.meta.dirname, "../../../controller/spawner.ts");
  return new Spawner(await bundle(main, `spawner-${process.pid}/spawner.mjs`));
}
