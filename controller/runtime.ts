import type { Logger } from "pino";
import type { Clock, Random } from "../common/time.ts";

/** External dependencies that every service receives. */
export interface Runtime {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}
