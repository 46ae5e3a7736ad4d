import type { Runtime } from "../../runtime.ts";

/** What the engine is given of the outside world; without a log it is silent. */
export type EmbeddedRuntime = Pick<Runtime, "clock" | "random"> & Partial<Pick<Runtime, "log">>;
