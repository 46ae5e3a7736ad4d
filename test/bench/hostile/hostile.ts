import type { Bench } from "../driver/frame.ts";
import { crowdFigures } from "./crowd.ts";
import { isChosen, routeFigures } from "./routes.ts";
import { neighbourFigures } from "./scripts.ts";
import { ProbedController } from "./turn-probe.ts";

/**
 * Hostile calls and their effects on others: one at a time by class of routes, a hundred at once, and scripts of one
 * user beside those of another.
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
