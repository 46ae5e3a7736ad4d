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
  async run() {
    await using controller = await ProbedController.start();
    const figures = isChosen({ name: "neighbours" }) ? [...(await neighbourFigures(controller.odp))] : [];
    figures.push(...(await routeFigures(controller)));
    if (isChosen({ name: "crowd" })) figures.push(...(await crowdFigures(controller)));
    return figures;
  },
};
