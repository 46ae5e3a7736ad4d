import type { Runtime } from "../../runtime.ts";

/** The outside world that the engine needs. Without a log it is silent. */
export type EmbeddedRuntime = Pick<Runtime, "clock" | "random"> & Partial<Pick<Runtime, "log">>;
