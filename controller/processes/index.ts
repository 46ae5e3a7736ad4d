export { Spawner } from "./spawner.ts";
export type { OnOutput, Processes, ProcessSpec, StartedProcess } from "./types.ts";
