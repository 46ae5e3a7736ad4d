import type { Logger } from "pino";
import type { Clock, Random } from "../common/time.ts";

/** What every service is given of the outside world. */
export interface Runtime {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}
