import type { Bench } from "./frame.ts";
import { crowdFigures } from "./hostile-crowd.ts";
import { isChosen, routeFigures } from "./hostile-routes.ts";
import { neighbourFigures } from "./hostile-scripts.ts";
import { ProbedController } from "./turn-probe.ts";

/**
 * Calls that are made to hurt, and what others notice of them: one at a time by class of routes, a hundred at once, and
 * scripts of one user beside another's.
 */
export const hostileBench: Bench = {
  name: "hostile",
  async run(tell) {
    await using controller = await ProbedController.start();
    if (isChosen({ name: "neighbours" })) (await neighbourFigures(controller.odp)).forEach(tell);
    await routeFigures(controller, tell);
    if (isChosen({ name: "crowd" })) (await crowdFigures(controller)).forEach(tell);
    return [];
  },
};
