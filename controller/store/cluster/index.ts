export { openClusterEngine, type ClusterEngineOptions } from "./engine.ts";
