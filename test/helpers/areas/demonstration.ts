import type { Objects } from "../../../controller/areas/objects/index.ts";
import { demoClasses } from "../../../controller/local/demo-definitions.ts";
import { testPrincipal } from "../time/runtime.ts";

/** Creates the classes of `npm start`, without records. */
export async function makeDemoClasses(objects: Objects): Promise<void> {
  for (const spec of demoClasses("/matrix")) await objects.createClass(testPrincipal(), spec, { ifNotExists: true });
}
