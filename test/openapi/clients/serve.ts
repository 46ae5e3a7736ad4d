import { once } from "node:events";
import { rm } from "node:fs/promises";
import { storeFolder } from "../../helpers/runs/folders.ts";
import { httpFor } from "../../security/answering.ts";
import { openWorld } from "../../security/world.ts";

/**
 * A controller for the tools of `test/tools/clients.ts`. It trusts the name of its caller, so no call can end its own
 * sign-in. Prints its address; ends when its input ends.
 */
const world = await openWorld();
const dataDir = await storeFolder("odp-clients-");
const admin = await world.assembly.users.present("matrix", "admin");
if (admin === undefined) throw new Error("The world has no administrator.");
const app = await httpFor(world.assembly, { callers: new Map([["matrix.admin", admin]]), dataDir });
console.log(await app.listen({ host: "127.0.0.1", port: 0 }));
process.stdin.resume();
await once(process.stdin, "end");
await app.close();
await world[Symbol.asyncDispose]();
await rm(dataDir, { recursive: true, force: true });
