export { openClusterEngine } from "./engine.ts";
