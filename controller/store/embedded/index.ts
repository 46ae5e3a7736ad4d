export { EmbeddedEngine, openEmbeddedEngine } from "./engine.ts";
export { checkStore } from "./upkeep/check.ts";
